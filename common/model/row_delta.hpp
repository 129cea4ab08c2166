// How a commit writes down what a round did to a row: 15 levels a weight, in units of a scale a
// row. Half a level is 7 % of the row's largest change; what rounding takes away is gone from the
// holder's copy too, and accuracy does not notice (volunteer/train/RECIPES.md).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/half.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner {

inline constexpr int kDeltaLevelMax = 7;
// The largest change of a weight in one round, as of a bias: the largest finite half.
inline constexpr float kDeltaMax = 65504.0F;
inline constexpr float kDeltaScaleMax = kDeltaMax / kDeltaLevelMax;
// A smaller change is none: its reciprocal might overflow.
inline constexpr float kDeltaMin = 1e-30F;

inline bool is_delta_scale(float scale) {
  return scale >= 0.0F && scale <= kDeltaScaleMax;
}

inline bool is_delta_level(std::int8_t level) {
  return level >= -kDeltaLevelMax && level <= kDeltaLevelMax;
}

// Adds the update's row `index` to `values`: its weights, then its bias if it has one. One product
// and one sum a weight, as in Kernels::round_delta. Finite values stay finite.
inline void add_row_delta(const SparseUpdate& update, std::size_t index, std::span<float> values) {
  const bool has_bias = !update.biases.empty();
  const std::size_t weights = values.size() - (has_bias ? 1 : 0);
  const std::int8_t* levels = update.levels.data() + index * weights;
  const float scale = update.scales[index];
  for (std::size_t i = 0; i < weights; ++i) values[i] += scale * static_cast<float>(levels[i]);
  if (has_bias) values[weights] += from_half(update.biases[index]);
}

}  // namespace gleaner
