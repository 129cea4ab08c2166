// How the processor computes with floats, thread by thread: training gives the same bits only with
// rounding to nearest, subnormals kept and exceptions that interrupt nothing. Libraries and drivers
// change these registers of threads that call them, and on Linux a new thread begins with those of
// the thread that starts it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace gleaner {

// The calling thread's registers in one number; flags that only report are left
// out. x86: MXCSR, and the x87 control word from bit 32 on. aarch64: FPCR.
std::uint64_t read_float_state();
// Changes nothing but what read_float_state() gives.
void write_float_state(std::uint64_t state);

// The state in which everything is computed.
std::uint64_t sound_float_state();

// Puts the calling thread right. For the start of every thread that computes.
void set_float_state();

// Looks after threads that compute together. Any thread.
class FloatWatch {
 public:
  // Puts the calling thread right where something has changed it, and remembers that. Costs a few
  // nanoseconds.
  void restore() {
    const std::uint64_t state = read_float_state();
    if (state != sound_float_state()) [[unlikely]]
      restore(state);
  }

  // restore(), for the start of a piece of work. Whatever changed the state may do so in the middle
  // of such a piece as well: an error (kFault), which names the register, when that happened twice.
  [[nodiscard]] Result<void> check();

 private:
  void restore(std::uint64_t state);

  std::atomic<std::uint32_t> changes_{0};
  std::atomic<std::uint64_t> last_{0};  // the state that was found
};

// "MXCSR is 0x9fc0 and has to be 0x1f80", of a state that is not sound.
std::string float_state_difference(std::uint64_t state);

}  // namespace gleaner
