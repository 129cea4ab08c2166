#include "tools/python/interrupts.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace gleaner {
namespace {

std::atomic<unsigned> interrupt_count{0};
std::atomic<void (*)(int)> handler_before{nullptr};  // Python's, for all of its handlers

void on_interrupt(int signal) {
  ++interrupt_count;
  if (const auto handler = handler_before.load()) handler(signal);
}

}  // namespace

void watch_interrupts() {
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

unsigned interrupts() {
  return interrupt_count;
}

void end_without_destructors() {
  // The last handler that is set is the first that runs.
  on_exit(
      [](int status, void*) {
        std::fflush(nullptr);
        _exit(status);
      },
      nullptr);
}

}  // namespace gleaner
