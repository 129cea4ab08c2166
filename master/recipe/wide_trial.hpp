// Trains candidates for a run without a hidden layer on the data of trials, with the arithmetic of
// the run, and scores what they answer to held-out examples. Results do not depend on the number of
// threads. One thread at a time, which lends the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "master/recipe/trial_data.hpp"

namespace gleaner {

// The quality of each held-out example's answer, part by part: the mean of precision@1 and nDCG@5
// (Järvelin and Kekäläinen 2002), between 0 and 1. Examples without labels are left out. The first
// answer is what people see first, and nDCG@5 tells candidates apart whose first answers are alike.
using Quality = std::vector<double>;

inline constexpr std::uint32_t kTrialEpochsMax = 3;

class WideTrials {
 public:
  // `model`: the run's configuration. The parts' sizes and the schedule that suits them replace its
  // own. `parts` and `pool` outlive this object.
  static Result<std::unique_ptr<WideTrials>> open(const ModelConfig& model,
                                                  std::span<const TrialData> parts,
                                                  ThreadPool& pool);

  // Trains on every part for `epochs` epochs, at most kTrialEpochsMax, from start rows of length
  // `scale`. The error names what the arithmetic of a shard refuses.
  Result<Quality> try_scale(float scale, std::uint32_t epochs);

 private:
  struct Part {
    const TrialData* data = nullptr;
    ModelConfig model;
    std::vector<std::uint32_t> label_counts;
    std::vector<ShardRows> rows;  // by shard: at the model's scale
  };

  explicit WideTrials(ThreadPool& pool) : pool_(pool) {}

  Result<void> add(const ModelConfig& model, const TrialData& data);
  Result<void> try_scale(const Part& part, float scale, std::uint32_t epochs, Quality& quality);

  ThreadPool& pool_;
  std::vector<Part> parts_;
};

}  // namespace gleaner
