// The weights of a stored row, and their length.
#pragma once

#include <cmath>
#include <span>

#include "common/ids.hpp"
#include "common/model/shard_map.hpp"
#include "storage/keep/model_rows.hpp"

namespace gleaner {

// Euclidean length.
inline double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * double{value};
  return std::sqrt(sum);
}

// Weights of a row, without an output row's bias.
inline std::span<const float> weights_of(const ShardMap& map, ShardId shard, const ModelRow& row) {
  return map.is_output(shard) ? row.values.first(row.values.size() - 1) : row.values;
}

}  // namespace gleaner
