// Writes trained models, their names and words as one file. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/result.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/keep/model_file.hpp"
#include "tools/predict/export_model.hpp"

namespace gleaner {

// kInvalidArgument unless the path ends in the name of a form.
Result<ModelFileForm> form_of(const std::string& path);

struct ModelTarget {
  std::string path;                        // is replaced if it exists
  const PredictData* data = nullptr;       // names and words; borrowed
  const NameTable* label_names = nullptr;  // instead of the names in `data`, unless null
  bool prune = false;                      // labels whose neuron was never active are left out
};

struct WrittenModel {
  std::uint64_t bytes = 0;
  std::size_t left_out = 0;  // labels
  std::uint32_t labels = 0;
  std::uint32_t hidden = 0;
  bool reads_texts = false;
  std::string digest;  // as metadata_of() has it
};

using ShardsDone = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Several models become their mean; kInvalidArgument where they cannot.
Result<WrittenModel> write_model(const std::vector<ModelPart>& parts, const ModelTarget& target,
                                 const ShardsDone& shards_done);

}  // namespace gleaner
