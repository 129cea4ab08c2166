// `gleaner dataset`: its verbs, each a function of its flags that prints to stdout.
#pragma once

#include <cstdint>
#include <string>

#include "common/data/word_model.hpp"
#include "tools/cli/console.hpp"
#include "tools/dataset/dataset_synth_points.hpp"

namespace CLI {
class App;
}

namespace gleaner {

struct InfoFlags {
  std::string source;
  std::string like;          // data set whose dimensions the ids must fit
  std::uint64_t limit = 20;  // problems to list
  ReadFlags read;
  bool plot = false;  // the curve of the labels' frequencies
  bool json = false;
};

// Prints to stdout. kInvalidData when a run cannot train on the set as it is.
Result<void> run_dataset_info(const InfoFlags& flags);

// The way from texts to examples.
struct TextFlags {
  std::string vocabulary;   // folder with the words and labels to use; empty: learn them
  std::string form;         // csv, tsv or json; empty: recognised
  std::string separator;    // between fields: a character or "tab"; empty: recognised
  std::string quote;        // double or none; empty: double but for TSV
  std::string encoding;     // empty: recognised
  TextFields fields;        // without a separator of tags: it is recognised
  std::string label_texts;  // a file with the labels' words; empty: none
  std::string language;     // of SKOS's labels; empty: the most frequent
  std::string words = to_string(kDefaultWords);
  std::uint32_t count_min = 2;      // least number of training examples with a word
  std::uint32_t tag_count_min = 1;  // least number of training examples with a tag
  double test_share = 0;
  std::uint64_t seed = 1;
};

struct ConvertFlags {
  std::string source;
  std::string output;  // a folder for texts without a vocabulary
  std::string to;      // xc, libsvm, packed; empty: as the output's name ends
  std::string like;    // data set whose dimensions the result gets
  ReadFlags read;
  TextFlags text;
  bool no_normalize = false;
  bool json = false;
  bool force = false;
};

// Converts between forms; converts texts where the flags name a text field or a vocabulary.
Result<void> run_dataset_convert(const ConvertFlags& flags);
Result<void> run_dataset_text(const ConvertFlags& flags);

struct PackFlags {
  std::string source;
  std::string output;  // empty: the cache file of training
  std::string like;    // data set whose dimensions the ids must fit
  std::string cache_dir;
  ReadFlags read;
  bool no_normalize = false;
  bool json = false;
  bool force = false;
};

Result<void> run_dataset_pack(const PackFlags& flags);

struct SplitFlags {
  std::string source;
  std::string train;
  std::string test;
  std::string sample;        // instead of the parts: a file for some examples
  std::uint64_t points = 0;  // of the sample; 0: by `share`
  double share = 0.2;        // fraction of the examples that go to `test`, or to the sample
  std::uint64_t seed = 1;
  bool json = false;
  ReadFlags read;
  bool force = false;
};

// Refuses a fraction for the test part that is not between 0 and 1.
Result<void> check_test_share(double share);

// Whether example `index` belongs to the test part: a hash of seed and index decides. 0 < share
// < 1.
bool is_test_point(std::uint64_t seed, std::uint64_t index, double share);

// Chooses exactly `wanted` of `total` examples, in order. Every set of that size is equally likely,
// and the set is a function of the three numbers alone.
class SampleChoice {
 public:
  SampleChoice(std::uint64_t seed, std::uint64_t total, std::uint64_t wanted)
      : seed_(seed), left_(total), wanted_(wanted) {}

  bool next();

 private:
  std::uint64_t seed_;
  std::uint64_t left_;    // examples not yet decided
  std::uint64_t wanted_;  // of `left_`
  std::uint64_t index_ = 0;
};

Result<void> run_dataset_split(const SplitFlags& flags);

struct SynthFlags {
  std::string train;
  std::string test;  // empty: none
  std::uint64_t points = 100'000;
  std::uint64_t test_points = 10'000;
  SynthOptions options;
  bool json = false;
  bool force = false;
};

Result<void> run_dataset_synth(const SynthFlags& flags);

// Adds the flags of every verb that reads a text file of examples.
void add_read_flags(CLI::App& verb, ReadFlags& flags);

}  // namespace gleaner
