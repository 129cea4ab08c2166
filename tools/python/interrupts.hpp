// Forks and Ctrl-C, of which Python tells its main thread alone. Included by module.cpp.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace gleaner {

inline std::atomic<unsigned> interrupt_count{0};            // since the process began
inline std::atomic<void (*)(int)> handler_before{nullptr};  // Python's, for all of its handlers

inline void on_interrupt(int signal) {
  ++interrupt_count;
  if (const auto handler = handler_before.load()) handler(signal);
}

// Begins to count SIGINT on its way to Python's handler, which is called as before; to be called
// again when another handler may have been installed. Where SIGINT is ignored or ends the process,
// it stays so. Any thread.
inline void watch_interrupts() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);

  struct sigaction present {};

  if (sigaction(SIGINT, nullptr, &present) != 0 || (present.sa_flags & SA_SIGINFO) != 0) return;
  const auto handler = present.sa_handler;
  if (handler == on_interrupt || handler == SIG_IGN || handler == SIG_DFL) return;
  handler_before = handler;
  present.sa_handler = on_interrupt;
  sigaction(SIGINT, &present, nullptr);
}

// In the child of a fork(): its end does not wait for threads of libraries, which it does not have.
// The last handler that is set is the first that runs.
inline void end_without_destructors() {
  on_exit(
      [](int status, void*) {
        std::fflush(nullptr);
        _exit(status);
      },
      nullptr);
}

}  // namespace gleaner
