// The data that a run starts from: the packed training and held-out sets, the label counts, and the
// model that configuration and data give. Reading is the slow part of a first start.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "common/train/wide/wide_trainer.hpp"
#include "master/config/config.hpp"
#include "master/see/run_events.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/wide_start.hpp"

namespace gleaner {

struct RunData {
  std::unique_ptr<PackedDataset> train;
  std::unique_ptr<PackedDataset> test;  // null without a test file
  std::vector<std::uint32_t> label_counts;
  std::unique_ptr<InitialModel> initial;  // null: weights drawn from the seed
  std::unique_ptr<WideStart> wide_start;  // null: no wide rows, or the store has them already
  WideWeights wide_weights;               // without a hidden layer
  ModelConfig model;
  RecipeChosen recipe;  // what of it nobody has set
  // evaluation.sample in effect; unset where nobody has set it and there is nothing to evaluate on.
  std::optional<std::uint64_t> evaluation_sample;
};

// `on_note` gets sentences for people while files are packed.
Result<RunData> open_run_data(const MasterConfig& config,
                              const std::function<void(const std::string&)>& on_note);

// A store keeps RunData::wide_weights among its settings, so that a run that goes on need not count
// them again. None where the setting is absent or no such text.
inline constexpr const char* kWideWeightsKey = "wide.weights";
std::string wide_weights_text(const WideWeights& weights);
std::optional<WideWeights> stored_wide_weights(const std::map<std::string, std::string>& settings);

}  // namespace gleaner
