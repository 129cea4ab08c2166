// How the codec's readers fail. Private to schema/. Every accessor of Cap'n Proto may throw, so
// the checks beside them throw as well, and decode() turns both into an Error in one place.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace gleaner {

struct Malformed {
  std::string what;  // begins with the field's name
};

// Throws: `field`, a colon, and the formatted rest.
template <typename... Args>
[[noreturn]] void malformed(const char* field, fmt::format_string<Args...> format, Args&&... args) {
  throw Malformed{fmt::format("{}: {}", field, fmt::format(format, std::forward<Args>(args)...))};
}

}  // namespace gleaner
