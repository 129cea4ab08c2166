// Bounds the bytes of a struct in Cap'n Proto by its table, exactly or slightly above, so that a
// message fits the one segment allocated for it. Private to codec.cpp.
#pragma once

#include "schema/wire/tables.hpp"

namespace gleaner {

// A table calls this for each field.
struct FieldSizer {
  // A field takes at most a word in its struct: a number, or a pointer to words elsewhere.
  static constexpr std::size_t kWordBytes = 8;
  std::size_t bytes = 0;

  template <typename T, typename Ways, typename... Bound>
  void operator()(const char* name, const T& value, const Ways& ways, const Bound&... bound) {
    bytes += kWordBytes;
    if constexpr ((Packs<Bound, T> || ...)) {
      bytes += (bound.bytes_max + ...) + kWordBytes;
    } else if constexpr (IsData<T>) {
      bytes += data_in(value).size() + kWordBytes;
    } else if constexpr (std::is_same_v<T, std::string>) {
      bytes += value.size() + kWordBytes;  // with a zero at its end
    } else if constexpr (std::is_same_v<T, ModelConfig>) {
      (*this)(name, model_fields(value), ways);
    } else if constexpr (kIsPlace<T> || std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      return;
    } else if constexpr (kIsOptional<T>) {
      if (value) fields(*value, *this);
    } else if constexpr (kIsList<T>) {
      bytes += kWordBytes;
      for (const auto& entry : value) add_entry(entry);
    } else {
      fields(value, *this);
    }
  }

 private:
  template <typename Entry>
  void add_entry(const Entry& entry) {
    if constexpr (IsData<Entry>) {
      bytes += data_in(entry).size() + 2 * kWordBytes;
    } else {
      fields(entry, *this);
    }
  }
};

}  // namespace gleaner
