// Loaded before the C library (LD_PRELOAD) by end-to-end tests: trouble that no test can make the
// machine have.
//
// GLEANER_FAULT_FILE names a file. While it exists and says "NUMBER TEXT", writes to files whose path
// contains TEXT fail with that errno; NUMBER 0: they wait until it no longer does.
// GLEANER_FAULT_ECHO is a descriptor: after each flush of text to standard output the program waits for a byte from it.
// GLEANER_FAULT_THREADS: this many threads can be started, and no more.
// GLEANER_FAULT_LINKS: no file gets a second name, and none is moved on a condition, as on FAT or SMB; all
// files show the mode 0755, and none takes another.
// GLEANER_FAULT_CLOCK: wall time leaps ten years forth or back whenever it is read.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

// Whether writes to the descriptor are in trouble, and with which errno.
static int in_trouble(int file, int* number) {
  const char* control = getenv("GLEANER_FAULT_FILE");
  if (control == NULL) return 0;
  const int source = open(control, O_RDONLY | O_CLOEXEC);
  if (source < 0) return 0;
  char text[256];
  const ssize_t size = read(source, text, sizeof text - 1);
  close(source);
  if (size <= 0) return 0;
  text[size] = '\0';
  char wanted[256];
  if (sscanf(text, "%d %255s", number, wanted) != 2) return 0;
  char link[64];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  return strstr(path, wanted) != NULL;
}

static int refused(int file) {
  int number = 0;
  while (in_trouble(file, &number)) {
    if (number != 0) {
      errno = number;
      return 1;
    }
    usleep(10 * 1000);
  }
  return 0;
}

ssize_t write(int file, const void* bytes, size_t size) {
  static ssize_t (*next)(int, const void*, size_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "write");
  return refused(file) ? -1 : next(file, bytes, size);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  static ssize_t (*next)(int, const void*, size_t, off64_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "pwrite64");
  return refused(file) ? -1 : next(file, bytes, size, at);
}

int fallocate(int file, int mode, off_t at, off_t size) {
  static int (*next)(int, int, off_t, off_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "fallocate");
  return refused(file) ? -1 : next(file, mode, at, size);
}

int fflush(FILE* stream) {
  static int (*next)(FILE*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "fflush");
  const int has_text = stream == stdout && __fpending(stream) > 0;  // the end of the program flushes too
  const int outcome = next(stream);
  const char* echo = has_text ? getenv("GLEANER_FAULT_ECHO") : NULL;
  char byte;
  while (echo != NULL && read(atoi(echo), &byte, 1) < 0 && errno == EINTR) continue;
  return outcome;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*next)(clockid_t, struct timespec*);
  static atomic_uint turn;
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "clock_gettime");
  const int outcome = next(clock, now);
  if (clock == CLOCK_REALTIME && getenv("GLEANER_FAULT_CLOCK") != NULL) {
    now->tv_sec += (atomic_fetch_add(&turn, 1) % 2 == 0 ? 1 : -1) * 10L * 365 * 86400;
  }
  return outcome;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*), void* given) {
  static int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static atomic_int started;
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "pthread_create");
  const char* most = getenv("GLEANER_FAULT_THREADS");
  if (most != NULL && atomic_fetch_add(&started, 1) >= atoi(most)) return EAGAIN;
  return next(thread, attributes, begin, given);
}

static int refuses_links(int number) {
  errno = number;
  return getenv("GLEANER_FAULT_LINKS") != NULL;
}

int link(const char* from, const char* to) {
  static int (*next)(const char*, const char*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "link");
  return refuses_links(EPERM) ? -1 : next(from, to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  static int (*next)(int, const char*, int, const char*, int);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "linkat");
  return refuses_links(EPERM) ? -1 : next(from_folder, from, to_folder, to, flags);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  static int (*next)(int, const char*, int, const char*, unsigned);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "renameat2");
  return flags != 0 && refuses_links(EINVAL) ? -1 : next(from_folder, from, to_folder, to, flags);
}

int fchmod(int file, mode_t mode) {
  static int (*next)(int, mode_t);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "fchmod");
  return mode % 01000 != 0755 && mode % 01000 != 0644 && refuses_links(EPERM) ? -1 : next(file, mode);
}

int fstat(int file, struct stat* facts) {
  static int (*next)(int, struct stat*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "fstat");
  const int outcome = next(file, facts);
  if (getenv("GLEANER_FAULT_LINKS") != NULL) facts->st_mode |= 0755;
  return outcome;
}
