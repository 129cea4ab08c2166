// Texts that an exported file carries: its metadata, names and words, as tensors. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// The content of the text tensors; empty where not known.
struct ExportTexts {
  std::string metadata;       // JSON
  std::string label_names;    // of the output rows, a name per line
  std::string feature_names;  // a name per line
  std::string words;          // words.json of the data set
  std::vector<double> idf;    // rarity() of each feature
};

// Takes names and words from `data`, a folder of `gleaner dataset` or a model file; none where
// `data` is empty. `labels_file` has other names of labels. `labels`, ascending, belong to the
// output rows. kInvalidData for names and words of another data set.
Result<ExportTexts> export_texts(const RunIdentity& identity,
                                 const std::map<std::string, std::string>& metadata,
                                 const std::string& data, const std::string& labels_file,
                                 const std::vector<std::uint32_t>& labels);

struct TextTensor {
  TensorSpec spec;
  std::span<const char> bytes;
};

// metadata and label_names, then feature_names, words and idf where known. `texts` outlives them.
std::vector<TextTensor> text_tensors(const ExportTexts& texts);

}  // namespace gleaner
