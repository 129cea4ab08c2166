// Normalised discounted cumulative gain of ranked labels. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace gleaner {

// nDCG@depth of an example. `labels`: its true labels, ascending, at least one. `ranked`: distinct
// predicted labels, best first; missing entries are misses.
inline double ndcg_at(std::size_t depth, std::span<const std::uint32_t> labels,
                      std::span<const std::uint32_t> ranked) {
  double gain = 0;
  double best = 0;
  for (std::size_t rank = 0; rank < depth; ++rank) {
    const double discount = 1 / std::log2(static_cast<double>(rank) + 2);
    if (rank < labels.size()) best += discount;
    if (rank < ranked.size() && std::ranges::binary_search(labels, ranked[rank])) gain += discount;
  }
  return gain / best;
}

}  // namespace gleaner
