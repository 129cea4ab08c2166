// The data that a run starts from: the packed training and held-out sets, the label counts, and the
// model that configuration and data give. Reading is the slow part of a first start.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "master/config/config.hpp"
#include "master/console/progress_events.hpp"
#include "storage/model/initial_model.hpp"
#include "storage/model/wide_start.hpp"

namespace gleaner {

struct RunData {
  std::unique_ptr<PackedDataset> train;
  std::unique_ptr<PackedDataset> test;  // null without a test file
  std::vector<std::uint32_t> label_counts;
  std::unique_ptr<InitialModel> initial;  // null: weights drawn from the seed
  std::unique_ptr<WideStart> wide_start;  // null: no wide rows, or the store has them already
  ModelConfig model;
  RecipeChosen recipe;  // what of it nobody has set
  // evaluation.sample in effect; unset where nobody has set it and there is nothing to evaluate on.
  std::optional<std::uint64_t> evaluation_sample;
};

// `on_note` gets sentences for people while files are packed.
Result<RunData> open_run_data(const MasterConfig& config,
                              const std::function<void(const std::string&)>& on_note);

}  // namespace gleaner
