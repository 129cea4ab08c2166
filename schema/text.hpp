// Text from a peer ends up on terminals and in logs: it is valid UTF-8 without control characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gleaner {

// True when `text` is well-formed UTF-8 (no overlong forms, surrogates or numbers beyond U+10FFFF)
// without the control characters U+0000-001F and U+007F-009F.
bool is_printable(std::string_view text);

// `text` made printable: what is not becomes '?', and it is cut to `bytes_max` between characters.
std::string printable(std::string_view text, std::size_t bytes_max);

}  // namespace gleaner
