// Reads structs from Cap'n Proto by their tables, and checks every bound. Throws Malformed or
// kj::Exception. Private to codec.cpp.
#pragma once

#include <capnp/list.h>

#include "common/text.hpp"
#include "schema/wire/tables.hpp"

namespace gleaner {

inline ByteView view(capnp::Data::Reader data) {
  return {data.begin(), data.size()};
}

template <typename T, typename Reader>
void read(Reader from, T& to);

template <typename T>
void check_value(const char* field, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) malformed(field, "{} is not finite", value);
  }
}

template <typename T, typename Bound>
void check_value(const char* field, T value, const Range<Bound>& range) {
  // Written so that a NaN fails.
  if (value >= range.least && value <= range.most) return;
  if constexpr (std::is_enum_v<T>) {
    malformed(field, "{} is unknown", raw(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    malformed(field, "{} is not between {} and {}", value, range.least, range.most);
  } else {
    malformed(field, "{}, must be {} to {}", value, range.least, range.most);
  }
}

inline void check_count(const char* field, std::size_t entries, const Count& count) {
  if (entries >= count.least && entries <= count.most) return;
  if (count.least == 0) malformed(field, "{} entries, at most {}", entries, count.most);
  malformed(field, "{} entries, must be {} to {}", entries, count.least, count.most);
}

inline std::string read_text(const char* field, capnp::Text::Reader text, std::size_t bytes_max) {
  if (text.size() > bytes_max) malformed(field, "{} bytes, at most {}", text.size(), bytes_max);
  const std::string_view chars(text.begin(), text.size());
  if (!is_printable(chars)) malformed(field, "not printable UTF-8");
  return std::string(chars);
}

template <typename T>
void read_data(const char* field, ByteView bytes, std::vector<T>& to) {
  to = read_values<T>(field, bytes);
}

template <typename T>
void read_data(const char* field, ByteView bytes, std::vector<T>& to, const Count& count) {
  read_data(field, bytes, to);
  check_count(field, to.size(), count);
}

template <std::size_t size>
void read_data(const char* field, ByteView bytes, std::array<std::uint8_t, size>& to) {
  if (bytes.size() != size) malformed(field, "{} bytes, not {}", bytes.size(), size);
  std::copy(bytes.begin(), bytes.end(), to.begin());
}

inline void read_data(const char* /*field*/, ByteView bytes, SharedBytes& to) {
  to = std::make_shared<const Bytes>(bytes.begin(), bytes.end());
}

// Puts `outer`, unless empty, in front of the field that an error in `body` names.
template <typename Body>
void within(const std::string_view outer, const Body& body) {
  try {
    body();
  } catch (Malformed& inner) {
    if (!outer.empty()) inner.what = fmt::format("{}.{}", outer, inner.what);
    throw;
  }
}

// A table calls this for each field. Each field is read once, since the traversal of a message is
// limited.
template <typename Reader>
struct FieldReader {
  Reader from;

  template <typename T, typename Ways, typename... Bound>
  void operator()(const char* name, T& value, const Ways& ways, const Bound&... bound) {
    if constexpr ((Packs<Bound, T> || ...)) {
      ((value = bound.unpack(name, view(ways.get(from)))), ...);
    } else if constexpr (IsData<T>) {
      read_data(name, view(ways.get(from)), value, bound...);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      value = static_cast<T>(ways.get(from));
      check_value(name, value, bound...);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = read_text(name, ways.get(from), bound...);
    } else if constexpr (std::is_same_v<T, ModelConfig>) {
      std::vector<ModelText> texts;
      (*this)(name, texts, ways, kModelTextCount);
      value = read_model(name, texts);
    } else if constexpr (kIsPlace<T>) {
      const std::uint32_t place = ways.get(from);
      if (place > 0) value = place - 1;
    } else if constexpr (kIsOptional<T>) {
      if (ways.has(from)) within(name, [&] { read(ways.get(from), value.emplace()); });
    } else if constexpr (kIsList<T>) {
      read_list(name, ways.get(from), value, bound...);
    } else {
      within(name, [&] { read(ways.get(from), value); });
    }
  }

 private:
  template <typename List, typename Entry>
  void read_list(const char* name, List list, std::vector<Entry>& to, const Count& count) {
    check_count(name, list.size(), count);
    to.reserve(list.size());
    within(name, [&] {
      for (const auto entry : list) {
        if constexpr (IsData<Entry>) {
          read_data(name, view(entry), to.emplace_back());
        } else {
          read(entry, to.emplace_back());
        }
      }
    });
  }
};

template <typename T, typename Reader>
void read(Reader from, T& to) {
  FieldReader<Reader> reader{from};
  fields(to, reader);
  check_fields(to);
}

}  // namespace gleaner
