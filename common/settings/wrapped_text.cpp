#include "common/settings/wrapped_text.hpp"

namespace gleaner {

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
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

std::string wrap_text(std::string_view text, std::size_t indent) {
  std::string result;
  for (const std::string& line : wrap(text, kTextColumns - indent)) {
    result += std::string(indent, ' ') + line + "\n";
  }
  return result;
}

}  // namespace gleaner
