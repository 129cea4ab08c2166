// Checks of rows and commits, whoever sent or stored them: one set of rules for the wire, the
// store and the trainers, so that nothing is stored that a volunteer would refuse to load. Pure
// functions; any thread.
//
// Within these magnitudes training arithmetic stays finite: with activation scales and weights
// below them no sum of products overflows a float. A commit changes a weight by at most kDeltaMax
// (shard_rows.hpp), so weights stay in range for 2^24 rounds, and a second moment is an average of
// squares that are far below kStateMax. So no NaN arises, whose bits differ between processors.
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

// Both are false for a NaN.
inline bool is_sound_state(float state) {
  return state >= 0.0F && state <= kStateMax;
}

inline bool are_sound_weights(std::span<const float> values) {
  return std::ranges::all_of(values,
                             [](float value) { return std::abs(value) <= kWeightMagnitudeMax; });
}

enum class RowsOf : std::uint8_t { kCheckpoint, kHandOver };

// kProtocol with a clause that names the row unless `rows` are ascending rows of the shard with
// lists of the right sizes, sound values, and hash codes of `model.hash_bits` bits. The caller
// knows where the rows came from and says so in front of the clause.
Result<void> check_rows(const ModelConfig& model, const ShardMap& map, ShardId shard,
                        const ShardRows& rows, RowsOf source);

// Checks a commit's part in the same way.
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
