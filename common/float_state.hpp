// The processor's floating-point state, per thread. Training gives the same bits only with rounding
// to nearest, subnormals kept and exceptions masked. Libraries and drivers may change these
// registers in threads that call them, and on Linux a new thread inherits them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace gleaner {

// The calling thread's registers as one number, without flags that only report. x86: MXCSR, and the
// x87 control word from bit 32 on. aarch64: FPCR.
std::uint64_t read_float_state();
// Changes only the bits that read_float_state() returns.
void write_float_state(std::uint64_t state);

// The required state.
std::uint64_t sound_float_state();

// Sets the required state in the calling thread. Call at the start of every computing thread.
void set_float_state();

// Watches the state of threads that compute together. Any thread.
class FloatWatch {
 public:
  // Corrects the calling thread's state if something has changed it, and remembers the change.
  // Costs a few nanoseconds.
  void restore() {
    const std::uint64_t state = read_float_state();
    if (state != sound_float_state()) [[unlikely]]
      restore(state);
  }

  // Calls restore() at the start of a piece of work. The cause of a change may also act in the
  // middle of such work, so the second change is an error (kFault), which names the register.
  [[nodiscard]] Result<void> check();

 private:
  void restore(std::uint64_t state);

  std::atomic<std::uint32_t> changes_{0};
  std::atomic<std::uint64_t> last_{0};  // the last wrong state
};

// "MXCSR is 0x9fc0 and has to be 0x1f80", for a wrong state.
std::string float_state_difference(std::uint64_t state);

}  // namespace gleaner
