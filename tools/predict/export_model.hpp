// The content of one exported file: models, texts (export_texts.cpp) and wide rows
// (wide_tensors.cpp). One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/result.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// An ensemble is one network that predicts the mean of several models' logits: their hidden units
// stand side by side, and each label's rows and biases are divided by the number of models. Every
// reader of a model reads an ensemble too.

// A model of the file. Its hidden units begin at `first_unit`.
struct ModelPart {
  std::string name;
  std::shared_ptr<RunStore> run;
  std::uint32_t first_unit = 0;
  std::string digest{};  // of its checkpoint
};

// Opens the stores to read. kNotFound for a store without a checkpoint.
Result<std::vector<ModelPart>> open_parts(const std::vector<std::string>& stores);

// The identity of the joined network: the first part's, with the sum of the hidden units. Refuses
// (kInvalidArgument, naming the part) other training data, other scaling, and more units than a
// network can have. Requires a part.
Result<RunIdentity> identity_of(const std::vector<ModelPart>& parts);

// Checkpoints, digests and audits of several models stand in the models' order, with blanks
// between. A part that came from a file keeps what the file has.
Result<std::map<std::string, std::string>> metadata_of(const RunIdentity& identity,
                                                       const std::vector<ModelPart>& parts);

// The content of the text tensors; empty where not known.
struct ExportTexts {
  std::string metadata;       // JSON
  std::string label_names;    // of the output rows, a name per line
  std::string label_titles;   // of the output rows
  std::string feature_names;  // a name per line
  std::string words;          // words.json of the data set
  std::vector<double> idf;    // rarity() of each feature
};

// Names and words come from `known`, but the labels' from `label_names` unless it is null.
// `labels`, ascending, belong to the output rows.
ExportTexts export_texts(const std::map<std::string, std::string>& metadata,
                         const PredictData& known, const NameTable* label_names,
                         const std::vector<std::uint32_t>& labels);

struct TextTensor {
  TensorSpec spec;
  std::span<const char> bytes;
};

// metadata and label_names, then feature_names, words and idf where known. `texts` outlives them.
std::vector<TextTensor> text_tensors(const ExportTexts& texts);

// The tensors of a model without a hidden layer hold each label's wide row, as a row of a sparse
// matrix in CSR form. These are the places of the wide rows in the file, by label.
struct WideShape {
  std::vector<std::uint32_t>
      offsets;  // labels + 1: label l owns entries [offsets[l], offsets[l+1])

  [[nodiscard]] std::uint64_t entries() const { return offsets.back(); }
};

// Reads all rows of the last checkpoint. kResources for more entries than 32 bits count.
Result<WideShape> wide_shape(RunStore& run);

// The first tensors of a file, in this order: wide.offsets, wide.features, wide.weights, wide.own,
// output.bias and label_counts.
std::vector<TensorSpec> wide_tensors(const WideShape& shape);

// Fills the tensors of wide_tensors(). Calls `shard_done` after each shard.
Result<void> fill_wide(RunStore& run, const WideShape& shape, ModelFile& file,
                       const std::function<void()>& shard_done);

}  // namespace gleaner
