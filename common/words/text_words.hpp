// Texts to words: maximal runs of ASCII letters, digits, '+' and bytes beyond ASCII, in lower case.
// The same on every machine, whatever its locale. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace gleaner {

// Changes ASCII letters only.
inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Expects lower case.
inline bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         static_cast<unsigned char>(c) >= 0x80;
}

template <typename Use>
void for_each_word(std::string_view text, Use use) {
  const std::string lowered = lower(text);
  std::size_t at = 0;
  while (at < lowered.size()) {
    std::size_t end = at;
    while (end < lowered.size() && is_word_byte(lowered[end])) ++end;
    if (end > at) use(std::string_view(lowered).substr(at, end - at));
    at = std::max(end, at + 1);
  }
}

}  // namespace gleaner
