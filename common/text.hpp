// Text from a peer ends up on terminals and in logs: it is valid UTF-8 without control characters.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gleaner {

// A number of things, in words.

// "1 shard", "2 shards".
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// True when `text` is well-formed UTF-8 (no overlong forms, surrogates or numbers beyond U+10FFFF)
// without the control characters U+0000-001F and U+007F-009F.
bool is_printable(std::string_view text);

// `text` made printable: what is not becomes '?', and it is cut to `bytes_max` between characters.
std::string printable(std::string_view text, std::size_t bytes_max);

}  // namespace gleaner
