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
#include "common/model/recipe.hpp"
#include "common/result.hpp"
#include "common/train/wide/wide_trainer.hpp"
#include "master/config/config.hpp"
#include "master/core/core_config.hpp"
#include "master/see/run_events.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/wide_start.hpp"

namespace gleaner {

// How many test examples an evaluation scores where nobody has set it. Pure arithmetic.

// As many of `test_examples` as are scored exactly in a tenth of the work of the training between
// two evaluations, but at least 1,000, or all where there are fewer. `label_entries`: true labels
// of all training examples together. `every_epochs` as in the configuration; 0: only at the end.
//
// Work and not time is counted: when a run ends early and which checkpoint is its best follow from
// its evaluations, so how fast a machine is must not decide what they score.
std::uint64_t evaluation_sample(const ModelConfig& model, std::uint64_t label_entries,
                                std::uint32_t every_epochs, std::uint64_t test_examples);

// The choices of a recipe as the console shows them, those that nobody has overridden.

// `model` is the one in effect: `config` over the recipe that made `choices`.
RecipeChosen recipe_chosen(const MasterConfig& config, const std::vector<RecipeChoice>& choices,
                           const ModelConfig& model);

// A recipe is made of the figures of the data, and of what `config` fixes beside the width in
// effect.
DatasetFacts facts_of(const PackedDataset& train);
RecipeRequest recipe_request(const MasterConfig& config, std::optional<std::uint32_t> hidden);

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

// The core's settings for a run, from the master's configuration and the data. A pure function; any
// thread.

// Names the run as people see it: after its store's folder.
std::string run_title(const MasterConfig& config);

CoreConfig core_config(const MasterConfig& config, const RunData& data);

// The one that was given, or that of a run whose length the recipe chose.
Patience patience_of(const MasterConfig& config);

}  // namespace gleaner
