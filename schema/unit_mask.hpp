// Which units of an example are on, as 64-bit words: what both packed formats walk over. Private to
// schema/.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "schema/little_endian.hpp"

namespace gleaner {

// One bit for each of the eight bytes of `bytes` that is not zero, in order.
inline std::uint64_t nonzero_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7fu;
  constexpr std::uint64_t kHigh = 0x8080808080808080u;
  // The high bit of each byte, set when the byte is not zero: adding 0x7f carries into it.
  const std::uint64_t high = (((bytes & kLow) + kLow) | bytes) & kHigh;
  // The multiplication gathers the eight high bits in the top byte.
  return ((high >> 7) * 0x0102040810204080u) >> 56;
}

// Mask of the next up to 64 codes; `count` is a multiple of 16.
inline std::uint64_t mask_of(const std::uint8_t* codes, std::size_t count) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < count; i += 8) {
    mask |= nonzero_bytes(load_le<std::uint64_t>(codes + i)) << i;
  }
  return mask;
}

// Calls visit(index) for every set bit, ascending.
template <typename Visit>
void for_each_bit(std::uint64_t mask, std::size_t first, Visit&& visit) {
  while (mask != 0) {
    visit(first + static_cast<std::size_t>(std::countr_zero(mask)));
    mask &= mask - 1;
  }
}

}  // namespace gleaner
