// Text in lines of a width that a terminal or a file of Markdown shows whole. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gleaner {

inline constexpr std::size_t kTextColumns = 80;

// Greedy wrapping; a word wider than a line gets its own line.
inline std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    if (word.empty()) continue;
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

// `text` wrapped at 80 columns, every line indented by `indent`.
inline std::string wrap_text(std::string_view text, std::size_t indent) {
  std::string result;
  for (const std::string& line : wrap(text, kTextColumns - indent)) {
    result += std::string(indent, ' ') + line + "\n";
  }
  return result;
}

}  // namespace gleaner
