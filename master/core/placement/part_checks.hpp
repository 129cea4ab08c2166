// Whether a part of a commit or of a hand-over fits the shard that it claims to be of.
#pragma once

#include "common/model/shard_map.hpp"
#include "master/core/events/protocol_error.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Row numbers and the number of states.
template <typename Rows>
bool rows_fit(const ShardMap& map, ShardId shard, const Rows& rows) {
  const std::size_t count = rows.rows.size();
  return rows.states.size() == count && (count == 0 || rows.rows.back() < map.row_count(shard));
}

inline Result<void> check_rows(const ShardMap& map, ShardId shard, const ShardRows& rows) {
  if (!rows_fit(map, shard, rows) ||
      rows.codes.size() != rows.rows.size() * map.codes_per_row(shard) ||
      rows.values.size() != rows.rows.size() * map.row_width(shard)) {
    return protocol_error("rows that do not fit shard {}", raw(shard));
  }
  return {};
}

inline Result<void> check_update(const ShardMap& map, ShardId shard, const SparseUpdate& update) {
  const std::size_t count = update.rows.size();
  if (!rows_fit(map, shard, update) || update.scales.size() != count ||
      update.levels.size() != count * map.weights_per_row(shard) ||
      update.biases.size() != (map.is_output(shard) ? count : 0)) {
    return protocol_error("rows that do not fit shard {}", raw(shard));
  }
  return {};
}

// Parts hold rows, and those of one follow those of the part before, so that there are no more of
// them than the shard has rows. Only a lone part may be empty.
template <typename Part, typename Rows>
bool follows(const Part& part, const Rows& rows, std::uint64_t rows_from) {
  if (rows.rows.empty()) return part.parts == 1;
  return rows.rows.front() >= rows_from;
}

}  // namespace gleaner
