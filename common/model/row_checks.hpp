// Checks of rows and commits. Wire, store and trainers use the same rules, so that the store never
// has rows that a volunteer refuses to load. Pure functions; any thread.
//
// Within these magnitudes the arithmetic of training stays finite: no sum of products of
// activations and weights overflows a float. A commit changes a weight by at most kDeltaMax
// (shard_rows.hpp), so weights stay in range for 2^24 rounds, and a second moment is an average of
// squares far below kStateMax. So no NaN arises, whose bits would differ between processors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"

namespace gleaner {

inline constexpr float kHiddenScaleMax = 0x1p32F;
inline constexpr float kWeightMagnitudeMax = 0x1p40F;
inline constexpr float kStateMax = 0x1p116F;

// Both are false for NaN.
inline bool is_sound_state(float state) {
  return state >= 0.0F && state <= kStateMax;
}

inline bool are_sound_weights(std::span<const float> values) {
  return std::ranges::all_of(values,
                             [](float value) { return std::abs(value) <= kWeightMagnitudeMax; });
}

enum class RowsOf : std::uint8_t { kCheckpoint, kHandOver };

// kProtocol unless `rows` are ascending rows of the shard with lists of the right sizes, sound
// values, and hash codes of `model.hash_bits` bits. The error is a clause that names the row; the
// caller puts the source of the rows in front.
Result<void> check_rows(const ModelConfig& model, const ShardMap& map, ShardId shard,
                        const ShardRows& rows, RowsOf source);

// Checks a part of a commit in the same way.
Result<void> check_update(const ShardMap& map, ShardId shard, const SparseUpdate& update);

// Whether a part of a commit or of a hand-over fits its shard, and the parts before it, which leave
// rows from `rows_from` on. Parts hold ascending rows: `part` is refused too where the parts that
// are to follow it would find no row. Only a lone part may be empty.
template <typename Part, typename Rows>
bool follows(const Part& part, const Rows& rows, std::uint64_t rows_from, std::uint32_t row_count) {
  if (part.part >= part.parts) return false;
  if (rows.rows.empty()) return part.parts == 1;
  const std::uint64_t to_follow = part.parts - part.part - 1;
  return rows.rows.front() >= rows_from && rows.rows.back() + to_follow < row_count;
}

}  // namespace gleaner
