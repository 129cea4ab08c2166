// Streams of numbers of up to 32 bits without gaps. Private to schema/.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/bytes.hpp"

namespace gleaner {

// Appends numbers to a stream that begins with the lowest bit of the first byte.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* target) : target_(target) {}

  void put(std::uint32_t value, unsigned width) {
    pending_ |= std::uint64_t{value} << count_;
    count_ += width;
    if (count_ >= 32) {
      store_le(static_cast<std::uint32_t>(pending_), target_);
      target_ += 4;
      pending_ >>= 32;
      count_ -= 32;
    }
  }

  // Writes the last, partly filled bytes, padded with zeros, and returns the end of the stream.
  std::uint8_t* finish() {
    for (; count_ > 0; count_ -= std::min(count_, 8u)) {
      *target_++ = static_cast<std::uint8_t>(pending_);
      pending_ >>= 8;
    }
    return target_;
  }

 private:
  std::uint8_t* target_;
  std::uint64_t pending_ = 0;  // fewer than 32 bits between calls
  unsigned count_ = 0;
};

// Reads a stream of BitWriter. The caller has checked that the stream is long enough.
class BitReader {
 public:
  explicit BitReader(ByteView source) : source_(source) {}

  std::uint32_t get(unsigned width, std::uint64_t mask) {
    const std::size_t byte = position_ >> 3;
    std::uint64_t word = 0;
    if (byte + 8 <= source_.size()) [[likely]] {
      word = load_le<std::uint64_t>(source_.data() + byte);
    } else {
      std::memcpy(&word, source_.data() + byte, source_.size() - byte);
    }
    const unsigned shift = position_ & 7u;
    position_ += width;
    return static_cast<std::uint32_t>((word >> shift) & mask);
  }

  // Whether the bits up to the next byte are zero.
  [[nodiscard]] bool padding_is_zero() const {
    return (position_ & 7u) == 0 || source_.back() >> (position_ & 7u) == 0;
  }

 private:
  ByteView source_;
  std::size_t position_ = 0;
};

// Bit i of the result: whether byte i of `bytes` is not zero. Private to schema/.
inline std::uint64_t nonzero_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7fu;
  constexpr std::uint64_t kHigh = 0x8080808080808080u;
  // The high bit of each byte, set when the byte is not zero: adding 0x7f carries into it.
  const std::uint64_t high = (((bytes & kLow) + kLow) | bytes) & kHigh;
  // The multiplication gathers the eight high bits in the top byte.
  return ((high >> 7) * 0x0102040810204080u) >> 56;
}

// One bit for each of at most 64 codes: whether it is not zero. `count` is a multiple of 16.
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
