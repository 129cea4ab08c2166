// The form in which the tags of one example stand in one text: cutting them, and recognising the
// form. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gleaner {

std::string_view trimmed(std::string_view text);
// The parts between separators.
std::vector<std::string> cut_at(std::string_view text, std::string_view separator);

// Names in words.json and --tag-separator for forms without a separator.
inline constexpr const char* kTagList = "list";    // ['a', 'b'], a list of Python or JSON
inline constexpr const char* kTagBrackets = "<>";  // <a><b>
inline constexpr const char* kTagComma = ",";

// The tags of `text`, not trimmed. Cuts at commas where the list or the brackets are missing.
std::vector<std::string> cut_tags(std::string_view text, const std::string& separator);

// Recognises the form from uncut texts.
class TagFormGuess {
 public:
  void add(std::string_view text);

  // kTagList or kTagBrackets if all texts have it; else the first of , ; | that occurs.
  [[nodiscard]] std::string form() const;

  [[nodiscard]] std::uint64_t texts() const { return texts_; }

 private:
  std::uint64_t texts_ = 0;
  std::uint64_t lists_ = 0;
  std::uint64_t brackets_ = 0;
  std::array<bool, 3> has_separator_{};
};

// The form that would cut the label further; empty where the label looks whole.
std::string form_inside(std::string_view label);

}  // namespace gleaner
