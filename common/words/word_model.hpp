// Makes points of texts the same way again: words.json and features.txt in the folder of a data set
// that was made of texts. Immutable once made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/dataset/name_table.hpp"
#include "common/dataset/point.hpp"
#include "common/result.hpp"
#include "common/words/vocabulary.hpp"
#include "common/words/word_rule.hpp"

namespace gleaner {

// How words were made of the source, and weighed.
enum class WordKind : std::uint8_t {
  kText,    // words of a text; (1 + ln occurrences in the point) x rarity
  kDebian,  // of `gleaner dataset debian`; a weight by kind x the root of the rarity
};

// Where texts and tags stand in their source.
struct TextFields {
  std::vector<std::string> text;  // columns or keys
  std::string tags;
  std::string name;           // of the point; empty: its text's beginning
  std::string tag_separator;  // "list" and "<>" are forms without one
};

struct WordModel {
  WordKind kind = WordKind::kText;
  std::uint64_t points = 0;  // for training
  TextFields fields;         // of kText
  Vocabulary words;
  WordRule rule = kAsciiWords;
  std::string icu = {};  // version whose dictionaries found the words; empty: none did

  // The words that the vocabulary has, weighed; no labels.
  [[nodiscard]] Point point_of(const std::string& text) const;
};

// The text of words.json: all of it but the words themselves, which features.txt has.
std::string word_model_json(const WordModel& model);

// The content of words.json and of features.txt, and how errors name where they stood.
struct WordsText {
  std::string_view json;
  std::string source;
};

struct FeatureNames {
  std::vector<std::string> names;
  std::string source;
};

// kInvalidData says which of the two is wrong.
Result<WordModel> word_model_of(const WordsText& words, FeatureNames features);

// Reads words.json and features.txt of the folder. kInvalidData says what is missing or wrong.
Result<WordModel> load_word_model(const std::string& folder);

// A file with a name a line, as one of its numbers.
Result<Vocabulary> load_numbered_names(const std::string& path);

// Words of a text with how often each occurs; ascending.
std::map<std::string, std::uint32_t> counted_words(const WordRule& rule, std::string_view text);

float tf_idf(std::uint32_t in_point, std::uint32_t occurrences, std::uint64_t points);

}  // namespace gleaner
