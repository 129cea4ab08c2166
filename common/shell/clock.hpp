// Time for the shells: which instant it is, and a call when more of it has passed. Programs use
// `common/net/io_clock.hpp`, simulations a clock that moves from call to call.
#pragma once

#include <functional>

#include "common/time.hpp"

namespace gleaner {

class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual Instant now() const = 0;
  // Calls once, on the thread that asks, and never from within this.
  virtual void after(Micros delay, std::function<void()> call) = 0;
};

}  // namespace gleaner
