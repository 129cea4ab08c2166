// Text for terminals and logs: a peer's text must be valid UTF-8 without control characters.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gleaner {

// A number with its noun: "1 shard", "2 shards", "2 batches".
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("tch") ? "es" : "s");
}

// Whether `text` is well-formed UTF-8 (no overlong forms, surrogates or numbers beyond U+10FFFF)
// without the control characters U+0000-001F and U+007F-009F.
bool is_printable(std::string_view text);

// Replaces other characters by '?', and cuts the text to `bytes_max` between characters.
std::string printable(std::string_view text, std::size_t bytes_max);

}  // namespace gleaner
