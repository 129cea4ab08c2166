// Turns a text into an example in the way the data set did: words.json and features.txt in the
// folder of a data set made of texts. Immutable once made.
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

// Names that occur often enough, numbered in ascending order, with their occurrences. One thread at
// a time.
class Vocabulary {
 public:
  Vocabulary() = default;
  // Takes names in the order of their numbers. kInvalidData, with the name of `source`, if they do
  // not ascend or the lists differ in length.
  static Result<Vocabulary> of(std::vector<std::string> names,
                               const std::vector<std::uint32_t>& occurrences,
                               const std::string& source);

  void count(const std::string& name) { ++names_[name].occurrences; }

  // The name gets a number, however rare it is.
  void keep(const std::string& name) { names_[name].is_numbered = true; }

  void forget(const std::string& name) { names_.erase(name); }

  void number(std::uint32_t least);

  struct Entry {
    std::uint32_t occurrences = 0;
    std::uint32_t id = 0;
    bool is_numbered = false;
  };

  // Null when the name has no number.
  [[nodiscard]] const Entry* find(const std::string& name) const;

  [[nodiscard]] const std::vector<std::string>& numbered() const { return numbered_; }

  // Occurrences of each numbered name, by number.
  [[nodiscard]] std::vector<std::uint32_t> occurrences() const;

 private:
  std::map<std::string, Entry> names_;
  std::vector<std::string> numbered_;
};

// ln((points + 1) / (occurrences + 1)) + 1: a word that is rare in the training examples weighs
// more.
double rarity(std::uint32_t occurrences, std::uint64_t points);

// The origin and weights of words.
enum class WordKind : std::uint8_t {
  kText,    // words of a text; (1 + ln occurrences in the text) x rarity
  kDebian,  // of tools/dataset/debian.py; weight by kind x root of rarity
};

// Columns or keys of texts and tags in the source.
struct TextFields {
  std::vector<std::string> text;  // columns or keys
  std::string tags;
  std::string name;           // of the example; empty: its text's beginning
  std::string tag_separator;  // or "list" or "<>", which are forms without a separator
};

struct WordModel {
  WordKind kind = WordKind::kText;
  std::uint64_t points = 0;  // training examples
  TextFields fields;         // of kText
  Vocabulary words;
  WordRule rule = kAsciiWords;
  std::string icu = {};  // version of ICU's dictionaries; empty: not used

  // A warning if texts of `source` were cut into words by other dictionaries than this program's;
  // else empty.
  [[nodiscard]] std::string dictionary_note(const std::string& source) const;
  // The weighted words of the text that the vocabulary has; without labels.
  [[nodiscard]] Point point_of(const std::string& text) const;
};

// The text of words.json: the model without the words, which features.txt has.
std::string word_model_json(const WordModel& model);

// The contents of words.json and of features.txt; errors name `source`.
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

// Reads words.json and features.txt of the folder. kInvalidData names the missing or wrong part.
Result<WordModel> load_word_model(const std::string& folder);

// Reads a file with one name per line, which is the name's number.
Result<Vocabulary> load_numbered_names(const std::string& path);

// The words of a text and their occurrences, ascending.
std::map<std::string, std::uint32_t> counted_words(const WordRule& rule, std::string_view text);

}  // namespace gleaner
