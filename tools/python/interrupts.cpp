#include "tools/python/interrupts.hpp"

#include <signal.h>

#include <atomic>
#include <mutex>

namespace gleaner {
namespace {

std::atomic<unsigned> interrupt_count{0};
// The handler before ours; it stays when it is read in a signal, since all handlers of Python are
// one function.
std::atomic<void (*)(int)> handler_before{nullptr};

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

}  // namespace gleaner
