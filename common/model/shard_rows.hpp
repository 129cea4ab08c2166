// Rows of a shard in downloads, hand-overs and stores, and the changes of a commit. Their widths
// follow from the shard (ShardMap::row_width, codes_per_row).
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

// Some rows in full precision, ascending. An absent row has its initial value or, in a hand-over,
// its value at the last commit.
struct ShardRows {
  std::vector<std::uint32_t> rows;  // within the shard
  std::vector<float> values;        // rows.size() x row_width: weights, then the bias (output)
  std::vector<float> states;        // rows.size(): second moment
  // rows.size() x codes_per_row.
  std::vector<std::uint32_t> codes;
  // Hand-over only, parallel to rows: 1 if the row changed after its codes were computed.
  std::vector<std::uint8_t> stale_codes;

  friend bool operator==(const ShardRows&, const ShardRows&) = default;
};

// The changes of a shard in a round. For each touched row, ascending, the rounded difference to its
// last committed value: a multiple of the row's scale for each weight, and a half-precision number
// for its bias. Store and volunteer add them in the same way, and so hold the same bits. Hash codes
// follow from a committed row's weights (common/train/sim_hash.hpp) and are not sent.
struct SparseUpdate {
  std::vector<std::uint32_t> rows;    // within the shard
  std::vector<float> scales;          // rows.size(); 0 to kDeltaScaleMax
  std::vector<std::int8_t> levels;    // rows.size() x weights per row, +-kDeltaLevelMax
  std::vector<std::uint16_t> biases;  // rows.size(), IEEE 754 binary16; empty in input shards
  std::vector<float> states;          // rows.size()

  friend bool operator==(const SparseUpdate&, const SparseUpdate&) = default;
};

// A commit has 15 levels per weight, in units of one scale per row. Half a level is 7 % of the
// row's largest change. The holder rounds its own copy too, and accuracy does not suffer
// (RECIPES.md).

inline constexpr int kDeltaLevelMax = 7;
// The largest change of a weight or a bias in a round: the largest finite half.
inline constexpr float kDeltaMax = 65504.0F;
inline constexpr float kDeltaScaleMax = kDeltaMax / kDeltaLevelMax;
// A smaller change counts as none: its reciprocal might overflow.
inline constexpr float kDeltaMin = 1e-30F;

inline bool is_delta_scale(float scale) {
  return scale >= 0.0F && scale <= kDeltaScaleMax;
}

inline bool is_delta_level(std::int8_t level) {
  return level >= -kDeltaLevelMax && level <= kDeltaLevelMax;
}

// Adds row `index` of the update to `values`: weights, then the bias if the row has one. One
// product and one sum per weight, as in Kernels::round_delta. Finite values stay finite.
inline void add_row_delta(const SparseUpdate& update, std::size_t index, std::span<float> values) {
  const bool has_bias = !update.biases.empty();
  const std::size_t weights = values.size() - (has_bias ? 1 : 0);
  const std::int8_t* levels = update.levels.data() + index * weights;
  const float scale = update.scales[index];
  for (std::size_t i = 0; i < weights; ++i) values[i] += scale * static_cast<float>(levels[i]);
  if (has_bias) values[weights] += from_half(update.biases[index]);
}

// The digest of a shard's stored rows, with which store and volunteer compare their copies. It is a
// sum over rows, so rows have no order, and a commit updates it row by row.
//
// Rows that no commit has touched are not included, nor are hash codes: both follow from other
// data.
struct ShardDigest {
  std::uint64_t rows = 0;  // stored
  std::uint64_t sum = 0;   // of their row_digest, modulo 2^64
  friend bool operator==(const ShardDigest&, const ShardDigest&) = default;
};

// XXH3-64 of the digests of all of a run's shards, in order; never 0. Any thread.
std::uint64_t rows_digest(std::span<const ShardDigest> shards);

// XXH3-64 of a row's values and optimizer state as little-endian floats, seeded with shard and row
// number. Any thread.
std::uint64_t row_digest(ShardId shard, std::uint32_t row, ByteView values_and_state);

// Writes the ShardMap::row_width floats of a row before the first batch to `values`; its optimizer
// state is 0. The row is a function of configuration, label count and row number, so untouched rows
// need not be stored or sent. Any thread.
//
// Output rows: uniform weights within +-output_scale / sqrt(H), and prior_log_odds() as bias. Input
// rows: uniform weights of standard deviation input_scale; the last row, the bias, is zero. A wide
// row that is not stored is zero. `label_count` is ignored for input shards.
void initial_row(const ModelConfig& config, const ShardMap& map, ShardId shard, std::uint32_t row,
                 std::uint32_t label_count, std::span<float> values);

// The log-odds of a label's fraction of the training examples (`label_count` of `points`, with half
// an example added on either side), between -8 and -7.5.
float prior_log_odds(std::uint64_t points, std::uint32_t label_count);

}  // namespace gleaner
