// A configuration chosen by measuring. Candidates are trained on a part of the data, and what they
// answer to held-out examples decides (master/recipe/recipe_trials.hpp).
//
// No rule knows the length of start rows (ModelConfig::wide_scale): a long row makes a label of few
// examples too sure of itself beside a frequent one, and by how much depends on how alike a label's
// examples are. Nor does a rule know whether a hidden layer answers better. The best length after
// one epoch is also nearly the best after several (tests/bench/RESULTS.md, scale-choice): so
// lengths are first tried for one epoch, then the best and its neighbours as long as a run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/recipe.hpp"
#include "common/result.hpp"

namespace gleaner {

struct RecipeSearch {
  // The recipe's configuration of the run. It stays unless another candidate's held-out quality is
  // better by more than the standard error of the difference on the same examples.
  ModelConfig usual;
  // With a hidden layer if `usual` has none, and the other way round; unset: not tried.
  std::optional<ModelConfig> other;
  // Whether these fields may be changed where there is no hidden layer.
  bool has_free_scale = true;
  bool has_free_rate = true;
  std::optional<std::uint32_t> epochs_max;  // of a trial
};

struct MeasuredRecipe {
  ModelConfig model;                // of the run
  std::string why;                  // of wide_scale, or of hidden where the other kind won
  std::vector<RecipeTrial> trials;  // in the order of trying
};

// Most examples of a trial's sample: all trials together take at most about 15 percent of the run's
// work, or that of kTrialPointsMin examples, about 20 seconds of one processor.
inline constexpr std::uint64_t kTrialPointsMin = 10'000;
std::uint64_t trial_sample(const ModelConfig& model);

// Nullopt if too few examples can be held out. A function of data and configuration; threads only
// make it faster. `scratch`: where files can be made for a moment. `on_note` gets sentences for
// people. Errors as in trial_data() and RecipeTrials::train().
Result<std::optional<MeasuredRecipe>> measured_recipe(
    const PackedDataset& train, const RecipeSearch& search, std::uint32_t threads,
    const std::string& scratch, const std::function<void(const std::string&)>& on_note);

}  // namespace gleaner
