// Whether a part of a commit or of a hand-over fits the parts before it.
#pragma once

#include <cstdint>

namespace gleaner {

// Parts hold rows, and those of one follow those of the part before, so that there are no more of
// them than the shard has rows. Only a lone part may be empty.
template <typename Part, typename Rows>
bool follows(const Part& part, const Rows& rows, std::uint64_t rows_from) {
  if (rows.rows.empty()) return part.parts == 1;
  return rows.rows.front() >= rows_from;
}

}  // namespace gleaner
