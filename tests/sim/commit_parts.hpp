// Cuts commits into small parts, so that a commit of a small world has several parts, as in a large
// run. All volunteers of a run cut alike, because audits compare the parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "schema/messages.hpp"

namespace gleaner::sim {

// The rows [begin, end) of the update.
inline SparseUpdate rows_of(const SparseUpdate& whole, std::size_t begin, std::size_t end) {
  const auto cut = [&]<typename T>(const std::vector<T>& values) {
    const std::size_t width = values.size() / whole.rows.size();
    const auto at = [&](std::size_t row) {
      return values.begin() + static_cast<std::ptrdiff_t>(row * width);
    };
    return std::vector<T>(at(begin), at(end));
  };
  SparseUpdate part;
  part.rows = cut(whole.rows);
  part.scales = cut(whole.scales);
  part.levels = cut(whole.levels);
  part.biases = cut(whole.biases);
  part.states = cut(whole.states);
  return part;
}

// The replies, with each commit in parts of `rows` rows; 0: not cut.
inline std::vector<Message> cut_commits(std::vector<Message> replies, std::size_t rows) {
  if (rows == 0) return replies;
  std::vector<Message> cut;
  for (Message& reply : replies) {
    const auto* commit = std::get_if<ShardCommit>(&reply);
    if (commit == nullptr || commit->parts != 1 || commit->update.rows.empty()) {
      cut.push_back(std::move(reply));
      continue;
    }
    const std::size_t all = commit->update.rows.size();
    const auto parts = static_cast<std::uint32_t>((all + rows - 1) / rows);
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::size_t begin = part * rows;
      cut.emplace_back(ShardCommit{commit->lease, commit->round, part, parts,
                                   rows_of(commit->update, begin, std::min(begin + rows, all))});
    }
  }
  return cut;
}

}  // namespace gleaner::sim
