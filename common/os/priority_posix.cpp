#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "common/os/priority.hpp"

namespace gleaner {
namespace {

// From linux/ioprio.h; the C library has no call for it.
constexpr int kIoOfOneThread = 1;
constexpr int kIoIdleClass = 3 << 13;

}  // namespace

void give_way(int nice) {
  // Everybody may lower a priority. If it is refused, threads keep theirs.
  if (niceness() < std::min(nice, kNiceMax)) {
    (void)setpriority(PRIO_PROCESS, 0, std::min(nice, kNiceMax));
  }
  if (nice < kNiceIdle) return;
  const sched_param none{};
  (void)sched_setscheduler(0, SCHED_IDLE, &none);
  (void)syscall(SYS_ioprio_set, kIoOfOneThread, 0, kIoIdleClass);
}

int niceness() {
  return getpriority(PRIO_PROCESS, 0);
}

void pin_to_processor(unsigned index) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const auto count = static_cast<unsigned>(CPU_COUNT(&allowed));
  if (count == 0) return;
  unsigned left = index % count;
  for (unsigned processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void give_way_in_memory() {
  // Raising it is always allowed; 1000 is the maximum.
  std::ofstream("/proc/self/oom_score_adj") << 800 << '\n';
}

}  // namespace gleaner
