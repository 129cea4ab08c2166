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

// Prints to stdout. kInvalidData when the set cannot be trained on as it is.
Result<void> run_dataset_info(const InfoFlags& flags);

// How texts become examples.
struct TextFlags {
  std::string vocabulary;  // folder whose words and labels to use instead of learning them
  std::string form;        // csv, tsv or json; empty: recognised
  std::string separator;   // of fields: a character or "tab"; empty: recognised
  std::string quote;       // double or none; empty: double but for TSV
  std::string encoding;    // empty: recognised
  TextFields fields;       // without a separator of tags, that is recognised
  std::string words = to_string(kDefaultWords);
  std::uint32_t count_min = 2;      // training points that have a word
  std::uint32_t tag_count_min = 1;  // training points that have a tag
  double test_share = 0;
  std::uint64_t seed = 1;
};

struct ConvertFlags {
  std::string source;
  std::string output;  // of texts without a vocabulary, a folder
  std::string to;      // xc, libsvm, packed; empty: as the output's name ends
  std::string like;    // data set whose dimensions the result takes on
  ReadFlags read;
  TextFlags text;
  bool no_normalize = false;
  bool json = false;
  bool force = false;
};

// Converts between forms, or from texts where a text field or a vocabulary is named.
Result<void> run_dataset_convert(const ConvertFlags& flags);
Result<void> run_dataset_text(const ConvertFlags& flags);

struct PackFlags {
  std::string source;
  std::string output;  // empty: the cache that training would make
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
  std::string sample;        // instead of the parts: a file for some points
  std::uint64_t points = 0;  // of the sample; 0: as `share` says
  double share = 0.2;        // of the points that go to `test`, or to the sample
  std::uint64_t seed = 1;
  bool json = false;
  ReadFlags read;
  bool force = false;
};

// Refuses a fraction for the test part that is not between 0 and 1.
Result<void> check_test_share(double share);

// Whether point `index` belongs to the test part: a hash of the seed and the index, so the same
// however often and in whatever order it is asked. 0 < share < 1.
bool is_test_point(std::uint64_t seed, std::uint64_t index, double share);

// Whether each of `total` points, asked for in order, belongs to a sample of exactly `wanted`. Any
// set of that size is as likely as any other, and it is a function of the three numbers alone.
class SampleChoice {
 public:
  SampleChoice(std::uint64_t seed, std::uint64_t total, std::uint64_t wanted)
      : seed_(seed), left_(total), wanted_(wanted) {}

  bool next();

 private:
  std::uint64_t seed_;
  std::uint64_t left_;    // points not asked for yet
  std::uint64_t wanted_;  // of them
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

// Adds the flags that every verb has that reads a text file of points.
void add_read_flags(CLI::App& verb, ReadFlags& flags);

}  // namespace gleaner
