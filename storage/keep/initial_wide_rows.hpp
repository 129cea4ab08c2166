// A label's wide row: its features, ascending, and their weights. On its way into a store the row
// is cut into stored rows of kWideWeights, shard by shard.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "common/train/wide/wide_trainer.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// A label's row: its features, ascending, and their weights.
struct WideRow {
  std::vector<std::uint32_t> features;
  std::vector<float> weights;  // parallel to features
  float bias = 0;
  // The weight that an example adds per square of its feature: the example's own part in the row.
  float own = 0;

  void clear();
  void add(std::uint32_t feature, float weight);
};

// Sets the row of a label; the row is empty before. Errors name file and label.
using WideRowOf = std::function<Result<void>(std::uint32_t label, WideRow& row)>;

// The bias of a label that is retired: no score of training is so low, and nothing answers it.
inline constexpr float kRetiredBias = -0x1p30F;

struct WideSizes {
  // ModelConfig::wide_rows: stored rows of the shard with the most rows, at most kWideRowsMax + 1.
  std::uint32_t rows = 0;
  WideWeights weights;
};

Result<WideSizes> wide_sizes(const ModelConfig& config, const WideRowOf& row_of);

// The initial rows of a new run, made one shard at a time.
InitialRows wide_initial_rows(const ModelConfig& config, WideRowOf row_of);

}  // namespace gleaner
