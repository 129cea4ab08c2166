// The model before its first batch, a function of the configuration, the label counts and the row
// alone, so that rows nobody has touched need not be stored or sent. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"

namespace gleaner {

// Writes the row's ShardMap::row_width floats to `values`; its optimizer state starts at 0.
// Output rows: uniform weights within +-output_scale / sqrt(H), and, as bias, the log-odds of the
// label's share of the training points (`label_count` of `config.points`, with half a point added
// on either side), between -8 and -7.5. Input rows: uniform weights of standard deviation
// input_scale; the bias row (the last one) is zero. A wide row that no shard has is zero.
// `label_count` is ignored for input shards.
void initial_row(const ModelConfig& config, const ShardMap& map, ShardId shard, std::uint32_t row,
                 std::uint32_t label_count, std::span<float> values);

// The log-odds of a label's share of the training points, as initial_row() says.
float prior_log_odds(std::uint64_t points, std::uint32_t label_count);

}  // namespace gleaner
