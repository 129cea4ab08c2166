// Makes points of texts the same way again: words.json and features.txt in the folder of a data set
// that was made of texts. Immutable once made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/data/point_parser.hpp"
#include "common/data/word_rule.hpp"
#include "common/result.hpp"

namespace gleaner {

// Names with numbers and how often they occur. One thread at a time.

// Names that occur at least so often, numbered in ascending order.
class Vocabulary {
 public:
  Vocabulary() = default;
  // Takes names in the order of their numbers. kInvalidData, naming `source`, when they do not
  // ascend or the lists differ in length.
  static Result<Vocabulary> of(std::vector<std::string> names,
                               const std::vector<std::uint32_t>& occurrences,
                               const std::string& source);

  void count(const std::string& name) { ++names_[name].occurrences; }

  void number(std::uint32_t least);

  struct Entry {
    std::uint32_t occurrences = 0;
    std::uint32_t id = 0;
    bool is_numbered = false;
  };

  // Null when the name has no number.
  [[nodiscard]] const Entry* find(const std::string& name) const;

  [[nodiscard]] const std::vector<std::string>& numbered() const { return numbered_; }

  // How often each numbered name occurred, by number.
  [[nodiscard]] std::vector<std::uint32_t> occurrences() const;

 private:
  std::map<std::string, Entry> names_;
  std::vector<std::string> numbered_;
};

// ln((points + 1) / (occurrences + 1)) + 1: the rarer a word among the training points, the more it
// weighs.
double rarity(std::uint32_t occurrences, std::uint64_t points);

// How words were made of the source, and weighed.
enum class WordKind : std::uint8_t {
  kText,    // words of a text; (1 + ln occurrences in the point) x rarity
  kDebian,  // of tools/dataset/debian.py; a weight by kind x the root of the rarity
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

}  // namespace gleaner
