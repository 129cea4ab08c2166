// Rows of a shard outside the shard: what downloads, hand-overs and stores exchange, and what a
// commit changes. Widths follow from the shard (ShardMap::row_width, codes_per_row).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/bytes.hpp"
#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/portable_math.hpp"

namespace gleaner {

// Some rows in full precision, ascending. A row that is absent has its initial value (see
// shard_rows.hpp), or, in a hand-over, its value at the last commit.
struct ShardRows {
  std::vector<std::uint32_t> rows;  // within the shard
  std::vector<float> values;        // rows.size() x row_width: weights, then the bias (output)
  std::vector<float> states;        // rows.size(): second moment
  // rows.size() x codes_per_row.
  std::vector<std::uint32_t> codes;
  // Hand-over only, parallel to rows: 1 where the row changed since its codes were computed.
  std::vector<std::uint8_t> stale_codes;

  friend bool operator==(const ShardRows&, const ShardRows&) = default;
};

// The change that a round made to a shard: for each row touched, ascending, the difference to its
// last committed value, coarsely (shard_rows.hpp): a multiple of the row's scale for each weight, a
// half-precision number for its bias. Whoever applies it computes the same sums, so that store and
// volunteer hold the same bits. The codes of a committed row are a function of its weights
// (common/train/sim_hash.hpp), so nobody has to send them.
struct SparseUpdate {
  std::vector<std::uint32_t> rows;    // within the shard
  std::vector<float> scales;          // rows.size(); 0 to kDeltaScaleMax
  std::vector<std::int8_t> levels;    // rows.size() x weights a row, +-kDeltaLevelMax
  std::vector<std::uint16_t> biases;  // rows.size(), IEEE 754 binary16; empty in input shards
  std::vector<float> states;          // rows.size()

  friend bool operator==(const SparseUpdate&, const SparseUpdate&) = default;
};

// How a commit writes down what a round did to a row: 15 levels a weight, in units of a scale a
// row. Half a level is 7 % of the row's largest change; what rounding takes away is gone from the
// holder's copy too, and accuracy does not notice (common/model/RECIPES.md).

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

// The digest of a shard's stored rows: what a store and a volunteer compare before either trusts
// the other's copy. A sum over rows, so that it has no order and follows a commit row by row.
//
// Not part of it: rows that no commit has touched, which follow from the configuration, and hash
// codes, which follow from a committed row's weights.
struct ShardDigest {
  std::uint64_t rows = 0;  // stored
  std::uint64_t sum = 0;   // of their row_digest, modulo 2^64
  friend bool operator==(const ShardDigest&, const ShardDigest&) = default;
};

// XXH3-64 of the digests of all of a run's shards, in order; never 0. Stateless; any thread.
std::uint64_t rows_digest(std::span<const ShardDigest> shards);

// XXH3-64 of a row: its values, then its optimizer state, as little-endian floats; seeded with the
// row's place. Stateless; any thread.
std::uint64_t row_digest(ShardId shard, std::uint32_t row, ByteView values_and_state);

// The model before its first batch, a function of the configuration, the label counts and the row
// alone, so that rows nobody has touched need not be stored or sent. Any thread.

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
