// A random change of a row.
#pragma once

#include <cstdint>

#include "common/counter_random.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner::test {

// Appends scale, levels and bias of one row: changes of up to `size` in every weight.
inline void push_random_delta(SparseUpdate& update, const ShardMap& map, ShardId shard, float size,
                              Rng& random) {
  update.scales.push_back(size / kDeltaLevelMax);
  for (std::uint32_t i = 0; i < map.weights_per_row(shard); ++i) {
    const auto level = static_cast<int>(random.next_below(2 * kDeltaLevelMax + 1)) - kDeltaLevelMax;
    update.levels.push_back(static_cast<std::int8_t>(level));
  }
  if (map.is_output(shard)) {
    update.biases.push_back(to_half(size * (1.0F - static_cast<float>(random.next_below(2)) * 2)));
  }
}

}  // namespace gleaner::test
