// Rules that cut a text into words. No locale changes them. Immutable; several threads may use a
// rule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
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

// `c` must be in lower case.
inline bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Calls `use` for maximal runs of ASCII letters, digits, '+' and bytes beyond ASCII, in lower case.
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

// Words are maximal runs of letters, marks, digits and '+'; a symbol such as an emoji is a word.
// Texts are normalised first (NFKC with case folding), so that composed and decomposed accents,
// full and half widths, and capitals are equal. ASCII text has the same words with is_ascii.
struct WordRule {
  // Words are maximal runs of ASCII letters, digits, '+' and bytes beyond ASCII, in lower case: the
  // rule of data sets whose words.json names no rule.
  bool is_ascii = false;
  // In scripts without spaces between words (Chinese, Japanese, Thai, ...), at least one of two:
  // ICU's dictionaries find words; every run of `characters_min` to `characters_max` characters is
  // a word.
  bool has_dictionary = false;
  std::uint32_t characters_min = 0;  // 0: none
  std::uint32_t characters_max = 0;

  bool operator==(const WordRule&) const = default;
};

inline constexpr WordRule kAsciiWords{.is_ascii = true};
inline constexpr WordRule kDefaultWords{
    .has_dictionary = true, .characters_min = 1, .characters_max = 2};

// "ascii", or a list of "icu" and "characters:A-B". kInvalidArgument names the valid forms.
Result<WordRule> parse_word_rule(const std::string& text);
std::string to_string(const WordRule& rule);

// Calls `use` for each word in the order in which words begin.
void for_each_word(const WordRule& rule, std::string_view text,
                   const std::function<void(std::string_view)>& use);

// The version of ICU's dictionaries, such as "72.1".
std::string icu_version();

// The words of a Debian package, e.g. "name python3", with their weights before rarity. A data set
// of tools/dataset/debian.py has more words, which a text does not contain: section, tags,
// maintainer.
std::map<std::string, double> debian_words(std::string_view name, std::string_view description);

}  // namespace gleaner
