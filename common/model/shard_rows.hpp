// Rows of a shard outside the shard: what downloads, hand-overs and stores exchange, and what a
// commit changes. Widths follow from the shard (ShardMap::row_width, codes_per_row).
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner {

// Some rows in full precision, ascending. A row that is absent has its initial value (see
// initial_weights.hpp), or, in a hand-over, its value at the last commit.
struct ShardRows {
  std::vector<std::uint32_t> rows;  // within the shard
  std::vector<float> values;        // rows.size() x row_width: weights, then the bias (output)
  std::vector<float> states;        // rows.size(): second moment
  // rows.size() x codes_per_row. Of wide rows in a hand-over, behind the neuron: the bits of the
  // weights that the short lists know (volunteer/train/wide), since features never change.
  std::vector<std::uint32_t> codes;
  // Hand-over only, parallel to rows: 1 where the row changed since its codes were computed.
  std::vector<std::uint8_t> stale_codes;

  friend bool operator==(const ShardRows&, const ShardRows&) = default;
};

// The change that a round made to a shard: for each row touched, ascending, the difference to its
// last committed value, coarsely (row_delta.hpp): a multiple of the row's scale for each weight, a
// half-precision number for its bias. Whoever applies it computes the same sums, so that store and
// volunteer hold the same bits. The codes of a committed row are a function of its weights
// (common/lsh/row_codes.hpp), so nobody has to send them.
struct SparseUpdate {
  std::vector<std::uint32_t> rows;    // within the shard
  std::vector<float> scales;          // rows.size(); 0 to kDeltaScaleMax
  std::vector<std::int8_t> levels;    // rows.size() x weights a row, +-kDeltaLevelMax
  std::vector<std::uint16_t> biases;  // rows.size(), IEEE 754 binary16; empty in input shards
  std::vector<float> states;          // rows.size()

  friend bool operator==(const SparseUpdate&, const SparseUpdate&) = default;
};

}  // namespace gleaner
