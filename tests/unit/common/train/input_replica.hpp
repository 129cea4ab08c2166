// An input shard's rows as a store has them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner {

// A shard's rows outside the layer: the initial ones, then whatever commits say.
struct InputReplica {
  ShardMap map;
  ShardId shard;
  ShardRows rows;

  InputReplica(const ModelConfig& config, std::uint32_t input_shard)
      : map(config), shard(map.input_shard(input_shard)) {
    const std::size_t width = map.row_width(shard);
    rows.values.resize(map.row_count(shard) * width);
    rows.states.resize(map.row_count(shard));
    for (std::uint32_t row = 0; row < map.row_count(shard); ++row) {
      rows.rows.push_back(row);
      initial_row(config, map, shard, row, 0, std::span(rows.values).subspan(row * width, width));
    }
  }

  void apply(const std::vector<SparseUpdate>& parts) {
    const std::size_t width = map.row_width(shard);
    for (const SparseUpdate& part : parts) {
      for (std::size_t i = 0; i < part.rows.size(); ++i) {
        add_row_delta(part, i, std::span(rows.values).subspan(part.rows[i] * width, width));
        rows.states[part.rows[i]] = part.states[i];
      }
    }
  }
};

}  // namespace gleaner
