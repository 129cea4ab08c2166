// How a text is cut into words: maximal runs of ASCII letters, digits, '+' and bytes beyond ASCII,
// in lower case, unless the rule says otherwise. No locale changes it. Immutable; a rule
// may be used by several threads at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/result.hpp"

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

// Letters, marks, digits and '+' make words; a symbol such as an emoji is a word. Texts are brought
// to one form first (NFKC with case folding), so that composed and decomposed accents, full and
// half widths, and capitals are the same. Of ASCII text, this gives the words that kAscii gives.
struct WordRule {
  // Maximal runs of ASCII letters, digits, '+' and bytes beyond ASCII, in lower case: the rule of
  // data sets whose words.json names none.
  bool is_ascii = false;
  // In scripts without spaces between words (Chinese, Japanese, Thai, ...): ICU's dictionaries find
  // the words; and every run of `characters_min` to `characters_max` characters is a word. At least
  // one of the two.
  bool has_dictionary = false;
  std::uint32_t characters_min = 0;  // 0: none
  std::uint32_t characters_max = 0;

  bool operator==(const WordRule&) const = default;
};

inline constexpr WordRule kAsciiWords{.is_ascii = true};
inline constexpr WordRule kDefaultWords{
    .has_dictionary = true, .characters_min = 1, .characters_max = 2};

// "ascii", or a list of "icu" and "characters:A-B". kInvalidArgument says what is expected.
Result<WordRule> parse_word_rule(const std::string& text);
std::string to_string(const WordRule& rule);

// Calls `use` for each word in the order in which words begin.
void for_each_word(const WordRule& rule, std::string_view text,
                   const std::function<void(std::string_view)>& use);

// The version of ICU whose dictionaries find words, as in "72.1".
std::string icu_version();

}  // namespace gleaner
