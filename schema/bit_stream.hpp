// Numbers of up to 32 bits, back to back. Private to schema/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "schema/little_endian.hpp"

namespace gleaner {

// Appends numbers of up to 32 bits to a stream whose first bit is the lowest of the first byte.
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

  // Writes the last, partly filled bytes, padded with zeros, and returns the stream's end.
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

// Reads what BitWriter wrote. The caller has checked that the stream holds what it asks for.
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

  // Bits from the position to the end, at most 7 once everything has been read.
  [[nodiscard]] bool padding_is_zero() const {
    return (position_ & 7u) == 0 || source_.back() >> (position_ & 7u) == 0;
  }

 private:
  ByteView source_;
  std::size_t position_ = 0;
};

}  // namespace gleaner
