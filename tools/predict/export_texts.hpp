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

// The content of the tensors; empty where it is not known.
struct ExportTexts {
  std::string metadata;       // JSON
  std::string label_names;    // a name a line, of the output rows
  std::string feature_names;  // a name a line
  std::string words;          // words.json of the data set
  std::vector<double> idf;    // rarity() of each feature
};

// Takes names and words from `data`, a folder of 'gleaner dataset' or a model file that carries
// them; none without it. `labels_file` has other names of labels. `labels`: of the output rows,
// ascending. kInvalidData for names and words of another data set than the run's.
Result<ExportTexts> export_texts(const RunIdentity& identity,
                                 const std::map<std::string, std::string>& metadata,
                                 const std::string& data, const std::string& labels_file,
                                 const std::vector<std::uint32_t>& labels);

struct TextTensor {
  TensorSpec spec;
  std::span<const char> bytes;
};

// metadata and label_names, and those of feature_names, words and idf that are known. `texts`
// outlives them.
std::vector<TextTensor> text_tensors(const ExportTexts& texts);

}  // namespace gleaner
