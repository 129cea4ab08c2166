// Numbers in byte strings, little endian, unaligned. Plain copies: every platform Gleaner is built
// for is little endian, and the assertion stops the first one that is not.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "common/bytes.hpp"

namespace gleaner {

static_assert(std::endian::native == std::endian::little,
              "formats are little endian and written by plain copies");

template <typename T>

requires std::is_arithmetic_v<T>

    T load_le(const std::uint8_t* source) {
  T value;
  std::memcpy(&value, source, sizeof(T));
  return value;
}

template <typename T>
requires std::is_arithmetic_v<T>

void store_le(T value, std::uint8_t* target) {
  std::memcpy(target, &value, sizeof(T));
}

// The values' bytes as they stand in memory, which is how they travel.
template <typename T>
ByteView bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

// Requires bytes.size() to be a multiple of sizeof(T).
template <typename T>
std::vector<T> values_of(ByteView bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace gleaner
