// Numbers that a person gives as words of the command line.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>

#include "common/console/terminal.hpp"
#include "common/result.hpp"

namespace gleaner {

// 0 to `last`; the error says of `what`.
inline Result<std::uint32_t> parse_number(const char* what, const std::string& text,
                                          std::uint64_t last) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number <= last) return number;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the run has no {} '{}': name one of 0 to {}", what, printable(text), last)};
}

}  // namespace gleaner
