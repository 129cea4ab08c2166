// Text in lines of a width that a terminal or a file of Markdown shows whole. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gleaner {

inline constexpr std::size_t kTextColumns = 80;

// Greedy wrapping; a word wider than a line gets its own line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// `text` wrapped at 80 columns, every line indented by `indent`.
std::string wrap_text(std::string_view text, std::size_t indent);

}  // namespace gleaner
