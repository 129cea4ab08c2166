// Trains candidates for a run's configuration on the data of trials, in this process and with the
// run's own code, and scores their answers to held-out examples. Results do not depend on the
// number of threads. One thread at a time, which lends the pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "master/recipe/trial_data.hpp"

namespace gleaner {

// The quality of each held-out example's answer, part by part: the mean of precision@1 and nDCG@5
// (Järvelin and Kekäläinen 2002), between 0 and 1. Examples without labels are left out. The first
// answer is what people see first, and nDCG@5 tells candidates apart whose first answers are alike.
using Quality = std::vector<double>;

class RecipeTrials {
 public:
  // `parts` and `pool` outlive this object.
  RecipeTrials(std::span<const TrialData> parts, ThreadPool& pool);
  ~RecipeTrials();

  // Trains `candidate` on every part, for as many epochs as its recipe takes for the part, at most
  // `epochs_max`. The sizes of the part, and the schedule and sampling that suit them, replace the
  // candidate's. Errors as in train_in_process().
  Result<Quality> train(const ModelConfig& candidate, std::optional<std::uint32_t> epochs_max);

 private:
  // The start rows of a part, at any length.
  struct Start;

  Result<void> train(std::size_t part, ModelConfig model, Quality& quality);

  std::span<const TrialData> parts_;
  ThreadPool& pool_;
  std::vector<Start> starts_;  // by part; made for its first candidate without a hidden layer
};

}  // namespace gleaner
