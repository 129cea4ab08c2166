// `gleaner dataset convert` of texts with tags: words become features, tags labels.
#pragma once

#include <cstdint>
#include <string>

#include "common/data/word_model.hpp"
#include "tools/cli/console.hpp"

namespace gleaner {

struct TextFlags {
  std::string source;
  std::string output;      // a folder; with `vocabulary`, a file
  std::string vocabulary;  // folder whose words and labels to use instead of learning them
  std::string form;        // csv, tsv or json; empty: recognised
  std::string separator;   // of fields: a character or "tab"; empty: recognised
  std::string quote;       // double or none; empty: double but for TSV
  std::string encoding;    // empty: recognised
  TextFields fields;       // without a separator of tags, that is recognised
  WordRule rule = kDefaultWords;
  std::string words = to_string(kDefaultWords);
  std::uint32_t count_min = 2;      // training points that have a word
  std::uint32_t tag_count_min = 1;  // training points that have a tag
  double test_share = 0;
  std::uint64_t seed = 1;
  bool json = false;
  bool force = false;
};

Result<void> run_dataset_text(const TextFlags& flags);

}  // namespace gleaner
