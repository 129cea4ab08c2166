// Owned and shared byte strings.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gleaner {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;
// A payload that several sessions send: packed once, never changed.
using SharedBytes = std::shared_ptr<const Bytes>;

inline ByteView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Numbers in byte strings, little endian, unaligned. Plain copies suffice: the assertion stops a
// build for a platform that is not little endian.

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

// The values' bytes in memory, which are also their wire form.
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

// Base32: bytes as letters a to z in lower case and digits 2 to 7 (RFC 4648 without padding), which
// are safe in URLs and shells, selected by a double click, and never mistaken for a flag.

// Number of characters for `bytes` bytes.
constexpr std::size_t base32_size(std::size_t bytes) {
  return (bytes * 8 + 4) / 5;
}

std::string to_base32(ByteView bytes);
// Nullopt unless `text` is what to_base32() returns for some `bytes` bytes.
std::optional<Bytes> from_base32(std::string_view text, std::size_t bytes);

}  // namespace gleaner
