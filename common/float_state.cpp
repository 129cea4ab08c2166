#include "common/float_state.hpp"

#include <fmt/format.h>

namespace gleaner {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kMxcsrMask = 0xffc0;  // other bits report exceptions
constexpr std::uint32_t kMxcsr = 0x1f80;
constexpr std::uint16_t kX87Mask = 0x0f3f;
constexpr std::uint16_t kX87 = 0x033f;  // long double with full precision

std::uint32_t read_mxcsr() {
  std::uint32_t word = 0;
  asm volatile("stmxcsr %0" : "=m"(word));
  return word;
}

std::uint16_t read_x87() {
  std::uint16_t word = 0;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}
#endif

}  // namespace

std::uint64_t sound_float_state() {
#if defined(__x86_64__)
  return kMxcsr | std::uint64_t{kX87} << 32;
#else
  return 0;
#endif
}

std::uint64_t read_float_state() {
#if defined(__x86_64__)
  const std::uint64_t x87 = read_x87() & kX87Mask;
  return (read_mxcsr() & kMxcsrMask) | x87 << 32;
#elif defined(__aarch64__)
  std::uint64_t fpcr = 0;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
#else
  return 0;
#endif
}

void write_float_state(std::uint64_t state) {
#if defined(__x86_64__)
  const std::uint32_t mxcsr =
      (read_mxcsr() & ~kMxcsrMask) | (static_cast<std::uint32_t>(state) & kMxcsrMask);
  const auto x87 =
      static_cast<std::uint16_t>((read_x87() & ~kX87Mask) | ((state >> 32) & kX87Mask));
  asm volatile("ldmxcsr %0" : : "m"(mxcsr));
  asm volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(state));
#else
  (void)state;
#endif
}

void set_float_state() {
  write_float_state(sound_float_state());
}

std::string float_state_difference(std::uint64_t state) {
  const std::uint64_t sound = sound_float_state();
#if defined(__x86_64__)
  const auto low = static_cast<std::uint32_t>(state);
  if (low == static_cast<std::uint32_t>(sound)) {
    return fmt::format("the x87 control word is {:#06x} and has to be {:#06x}", state >> 32,
                       sound >> 32);
  }
  return fmt::format("MXCSR is {:#06x} and has to be {:#06x}", low,
                     static_cast<std::uint32_t>(sound));
#else
  return fmt::format("FPCR is {:#x} and has to be {:#x}", state, sound);
#endif
}

void FloatWatch::restore(std::uint64_t state) {
  last_ = state;
  ++changes_;
  set_float_state();
}

Result<void> FloatWatch::check() {
  restore();
  if (changes_ < 2) return {};
  return Error{ErrorCode::kFault,
               "something in this process repeatedly changes how the processor rounds: " +
                   float_state_difference(last_) +
                   ". Results would differ from other machines'. Start the program without "
                   "libraries that are loaded into it, such as by LD_PRELOAD"};
}

}  // namespace gleaner
