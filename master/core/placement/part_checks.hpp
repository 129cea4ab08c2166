// Whether a part of a commit or of a hand-over fits its shard and the parts before it.
#pragma once

#include <cstdint>

namespace gleaner {

// Parts hold rows, and those of one follow those of the part before, so that there are no more of
// them than the shard has rows: `part` is refused too where the parts that are to follow it would
// find no row. Only a lone part may be empty.
template <typename Part, typename Rows>
bool follows(const Part& part, const Rows& rows, std::uint64_t rows_from, std::uint32_t row_count) {
  if (part.part >= part.parts) return false;
  if (rows.rows.empty()) return part.parts == 1;
  const std::uint64_t to_follow = part.parts - part.part - 1;
  return rows.rows.front() >= rows_from && rows.rows.back() + to_follow < row_count;
}

}  // namespace gleaner
