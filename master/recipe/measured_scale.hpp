// The length of start rows (ModelConfig::wide_scale), chosen by measuring.
//
// No rule knows this length: a long row makes a label of few examples too sure of itself beside a
// frequent one, and by how much depends on how alike a label's examples are. So the recipe's value
// and its neighbours are tried on held-out examples. The best length after one epoch is also nearly
// the best after several (tests/bench/RESULTS.md, scale-choice).
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

struct MeasuredScale {
  float scale = 0;
  std::string why;
  std::vector<RecipeTrial> trials;  // in the order of trying
};

// Most examples of a trial's sample: all trials together take at most 15 percent of the run's
// work, or that of kTrialPointsMin examples, about 20 seconds of one processor.
inline constexpr std::uint64_t kTrialPointsMin = 10'000;
std::uint64_t trial_sample(const ModelConfig& model);

// Nullopt if too few examples can be held out. A function of data and configuration; threads only
// make it faster. `scratch`: where files can be made for a moment. `on_note` gets sentences for
// people. Errors as in trial_data().
Result<std::optional<MeasuredScale>> measured_scale(
    const PackedDataset& train, const ModelConfig& model, std::uint32_t threads,
    const std::string& scratch, const std::function<void(const std::string&)>& on_note);

}  // namespace gleaner
