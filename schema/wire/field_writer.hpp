// Writes structs to Cap'n Proto by their tables. Expects well-formed values. Private to codec.cpp.
#pragma once

#include <capnp/list.h>

#include "common/text.hpp"
#include "schema/wire/tables.hpp"

namespace gleaner {

// Bounds the bytes of a struct in Cap'n Proto by its table, exactly or slightly above, so that a
// message fits the one segment allocated for it. Private to codec.cpp.

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

inline capnp::Data::Reader data_of(ByteView bytes) {
  return capnp::Data::Reader(bytes.data(), bytes.size());
}

template <typename T, typename Builder>
void write(const T& from, Builder to);

// A table calls this for each field.
template <typename Builder>
struct FieldWriter {
  Builder to;

  template <typename T, typename Ways, typename... Bound>
  void operator()(const char* name, const T& value, const Ways& ways, const Bound&... bound) {
    if constexpr ((Packs<Bound, T> || ...)) {
      (ways.set(to, data_of(bound.pack(value))), ...);
    } else if constexpr (IsData<T>) {
      ways.set(to, data_of(data_in(value)));
    } else if constexpr (std::is_same_v<T, double>) {
      ways.set(to, static_cast<float>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      ways.set(to, value);
    } else if constexpr (std::is_enum_v<T>) {
      ways.set(to, raw(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      ways.set(to, printable(value, bound...));
    } else if constexpr (std::is_same_v<T, ModelConfig>) {
      (*this)(name, model_fields(value), ways, kModelTextCount);
    } else if constexpr (kIsPlace<T>) {
      ways.set(to, value ? *value + 1 : 0);
    } else if constexpr (kIsOptional<T>) {
      if (value) write(*value, ways.init(to));
    } else if constexpr (kIsList<T>) {
      write_list(value, ways, bound...);
    } else {
      write(value, ways.init(to));
    }
  }

 private:
  template <typename Entry, typename Ways>
  void write_list(const std::vector<Entry>& from, const Ways& ways, const Count& count) {
    if (from.empty() && count.is_absent_if_empty) return;
    auto list = ways.init(to, static_cast<unsigned>(from.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      if constexpr (IsData<Entry>) {
        list.set(i, data_of(data_in(from[i])));
      } else {
        write(from[i], list[i]);
      }
    }
  }
};

template <typename T, typename Builder>
void write(const T& from, Builder to) {
  FieldWriter<Builder> writer{to};
  fields(from, writer);
}

}  // namespace gleaner
