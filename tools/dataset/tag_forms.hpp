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
// The parts between separators; one where there is none.
std::vector<std::string> cut_at(std::string_view text, std::string_view separator);

// Names in words.json and --tag-separator of the forms that are no separator.
inline constexpr const char* kTagList = "list";    // ['a', 'b'], as Python and JSON print a list
inline constexpr const char* kTagBrackets = "<>";  // <a><b>
inline constexpr const char* kTagComma = ",";

// The tags of `text`, not trimmed. A text that is no list, and one without brackets, is cut at
// commas.
std::vector<std::string> cut_tags(std::string_view text, const std::string& separator);

// Recognises the form by texts that were not cut yet.
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

// The form that would cut a label as read further; empty for one that looks whole.
std::string form_inside(std::string_view label);

}  // namespace gleaner
