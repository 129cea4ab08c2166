// Writes structs to Cap'n Proto by their tables. Expects well-formed values. Private to codec.cpp.
#pragma once

#include <capnp/list.h>

#include "common/text.hpp"
#include "schema/wire/tables.hpp"

namespace gleaner {

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
