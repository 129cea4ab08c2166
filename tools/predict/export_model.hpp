// Content of an exported file: the stores, their metadata, names, words and tensors. One
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Several trained models as one network that predicts the mean of their logits (an ensemble):
// their hidden units stand side by side, and each label's row and bias are theirs divided by how
// many they are. So whatever reads a model reads an ensemble.

// A model that goes into the file, whose hidden units begin at `first_unit` there.
struct ModelPart {
  std::string name;
  std::unique_ptr<RunStore> run;
  std::uint32_t first_unit = 0;
  std::string digest{};  // of its checkpoint
};

// Opens the stores to read. kNotFound where one has no checkpoint yet.
Result<std::vector<ModelPart>> open_parts(const std::vector<std::string>& stores);

// The identity of the joined network: the first part's identity with as many hidden units as all
// have together; of one part, its own. Refuses (kInvalidArgument, naming the part) parts that were
// not trained on the same points, or not scaled alike, and more units than a network can have.
// Requires one part or more.
Result<RunIdentity> identity_of(const std::vector<ModelPart>& parts);

// Where there are several models, checkpoints, digests and audits stand in their order, with blanks
// between.
Result<std::map<std::string, std::string>> metadata_of(const RunIdentity& identity,
                                                       const std::vector<ModelPart>& parts);

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

// The tensors of a model without a hidden layer: each label's wide row, as a row of a sparse matrix
// in CSR form. One thread.

// How wide rows lie in a file, by label.
struct WideShape {
  std::vector<std::uint32_t>
      offsets;  // labels + 1: label l owns entries [offsets[l], offsets[l+1])

  [[nodiscard]] std::uint64_t entries() const { return offsets.back(); }
};

// Goes through all rows of the last checkpoint. kResources for more entries than 32 bits count.
Result<WideShape> wide_shape(RunStore& run);

// wide.offsets, wide.features, wide.weights and wide.own, output.bias and label_counts: these
// names, in this order, are the first of a file.
std::vector<TensorSpec> wide_tensors(const WideShape& shape);

// Fills the tensors of wide_tensors(), which are the file's first. `shard_done`: after each shard.
Result<void> fill_wide(RunStore& run, const WideShape& shape, ModelFile& file,
                       const std::function<void()>& shard_done);

}  // namespace gleaner
