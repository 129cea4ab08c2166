// Terms with which tables.hpp describes a field: its accessors in Cap'n Proto, its bounds (checked
// on reading), and its packed form. Private to schema/ and tests.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "schema/compact_lists.hpp"

namespace gleaner {

// T may be const.
template <typename T, typename Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

// Accessors of a field in a Cap'n Proto struct.
template <typename Get, typename Set, typename Init, typename Has>
struct Access {
  Get get;
  Set set;
  Init init;
  Has has;
};

template <typename... Ways>
Access(Ways...) -> Access<Ways...>;

// ---- Bounds ------------------------------------------------------------------------------------

// The values of a number or an enumeration. A number without a range must only be finite.
template <typename T>
struct Range {
  T least;
  T most;
};

template <typename T>
Range(T, T) -> Range<T>;

// The values of an enumeration from 0 to `last`.
template <typename Enum>
Range<Enum> up_to(Enum last) {
  return {Enum{}, last};
}

// The number of entries of a list.
struct Count {
  std::size_t least = 0;
  std::size_t most = 0;
  bool is_absent_if_empty = false;  // an empty list is not written at all
};

// ---- Kinds of values ---------------------------------------------------------------------------

// Data: values that are sent as their bytes in memory.

template <typename T>
concept Number = std::is_arithmetic_v<T>;

template <Number T>
ByteView data_in(const std::vector<T>& values) {
  return bytes_of(values);
}

template <std::size_t size>
ByteView data_in(const std::array<std::uint8_t, size>& bytes) {
  return bytes;
}

inline ByteView data_in(const SharedBytes& bytes) {
  GLEANER_CHECK(bytes != nullptr);
  return *bytes;
}

template <typename T>
concept IsData = requires(const T& value) {
  data_in(value);
};

template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
// An index in a list is sent plus one; 0 means none.
template <typename T>
inline constexpr bool kIsPlace = std::same_as<T, std::optional<std::uint32_t>>;

template <typename T>
std::vector<T> read_values(const char* field, ByteView bytes) {
  if (bytes.size() % sizeof(T) != 0) {
    malformed(field, "{} bytes is no multiple of {}", bytes.size(), sizeof(T));
  }
  if constexpr (sizeof(T) == 1) return {bytes.begin(), bytes.end()};  // written once
  std::vector<T> values = values_of<T>(bytes);
  if constexpr (std::is_floating_point_v<T>) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) malformed(field, "entry {} is {}", i, values[i]);
    }
  }
  return values;
}

// ---- Packed forms ------------------------------------------------------------------------------

// A form packs a value, unpacks it or throws Malformed, and has a bound of its bytes.
template <typename Form, typename T>
concept Packs = requires(const Form& form, const T& value) {
  form.pack(value);
};

// A list of integers in few bytes, packed by functions of compact_lists.hpp.
template <typename Pack, typename Unpack>
struct Packed {
  std::size_t bytes_max;
  Pack pack;
  Unpack unpack;
};

template <typename Pack, typename Unpack>
Packed(std::size_t, Pack, Unpack) -> Packed<Pack, Unpack>;

// One member of each entry of a list. The first column sets the list's length.
template <typename List, typename Entry, typename Value>
auto column(List& list, Value Entry::*member, const char* first = nullptr) {
  const auto pack = [member](const std::vector<Entry>& entries) {
    Bytes bytes(entries.size() * sizeof(Value));
    std::uint8_t* to = bytes.data();
    for (const Entry& entry : entries) {
      std::memcpy(std::exchange(to, to + sizeof(Value)), &(entry.*member), sizeof(Value));
    }
    return bytes;
  };
  const auto unpack = [&list, member, first](const char* field, ByteView bytes) {
    std::vector<Entry> entries = std::move(list);
    const auto values = read_values<Value>(field, bytes);
    if (first == nullptr) entries.resize(values.size());
    if (values.size() != entries.size()) {
      malformed(field, "{} entries for {} {}", values.size(), entries.size(), first);
    }
    for (std::size_t i = 0; i < values.size(); ++i) entries[i].*member = values[i];
    return entries;
  };
  return Packed{list.size() * sizeof(Value), pack, unpack};
}

}  // namespace gleaner
