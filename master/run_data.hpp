// The data from which a run starts: the packed training and test sets, the label counts, and the
// model that follows from configuration and data. Reading takes most of a first start.
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
#include "common/model/recipe.hpp"
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
  std::unique_ptr<InitialModel> initial;       // null: weights drawn from the seed
  std::unique_ptr<PackedDataset> label_texts;  // null: none, or there is a hidden layer
  std::unique_ptr<WideStart> wide_start;       // null: no wide rows, or the store has them already
  WideWeights wide_weights;                    // without a hidden layer
  ModelConfig model;
  RecipeChosen recipe;              // values that nobody has set
  std::vector<RecipeTrial> trials;  // of a new run whose recipe measures
  // evaluation.sample in effect; unset when it is not configured and there is no test set.
  std::optional<std::uint64_t> evaluation_sample;
};

// `on_note` gets sentences for people while files are packed.
Result<RunData> open_run_data(const MasterConfig& config,
                              const std::function<void(const std::string&)>& on_note);

// A store keeps RunData::wide_weights among its settings, so that a resumed run need not count them
// again. Nullopt when the setting is absent or malformed.
inline constexpr const char* kWideWeightsKey = "wide.weights";
std::string wide_weights_text(const WideWeights& weights);
std::optional<WideWeights> stored_wide_weights(const std::map<std::string, std::string>& settings);

// How many test examples an evaluation scores by default: as many of `test_examples` as exact
// scoring takes for a tenth of the work of the training between two evaluations, but at least 1,000
// or all. `label_entries`: true labels of all training examples together. `every_epochs` is as in
// the configuration; 0: only at the end. Pure arithmetic.

// Counts work instead of time: the evaluations decide when a run ends early and which checkpoint
// is best, and a machine's speed must not change that.
std::uint64_t evaluation_sample(const ModelConfig& model, std::uint64_t label_entries,
                                std::uint32_t every_epochs, std::uint64_t test_examples);

}  // namespace gleaner
