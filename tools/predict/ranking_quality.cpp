#include "tools/predict/ranking_quality.hpp"

#include <algorithm>
#include <cmath>

namespace gleaner {
namespace {

double discount(std::size_t rank) {
  return 1 / std::log2(static_cast<double>(rank) + 2);
}

}  // namespace

void Quality::add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked) {
  if (labels.empty()) return;
  sums_.add(labels, ranked);
  ++points_;
  for (const std::uint32_t label : labels) {
    ++by_class_[static_cast<std::size_t>(classes_.of(label))].true_labels;
  }
  for (std::size_t d = 0; d < kDepths.size(); ++d) {
    double gain = 0;
    double best = 0;
    std::size_t hits = 0;
    for (std::size_t rank = 0; rank < kDepths[d]; ++rank) {
      if (rank < labels.size()) best += discount(rank);
      if (rank >= ranked.size() || !std::ranges::binary_search(labels, ranked[rank])) continue;
      gain += discount(rank);
      ++hits;
      ++by_class_[static_cast<std::size_t>(classes_.of(ranked[rank]))].hits[d];
    }
    ndcg_[d] += gain / best;
    recall_[d] += static_cast<double>(hits) / static_cast<double>(labels.size());
  }
}

double Quality::ndcg(std::size_t depth) const {
  return points_ == 0 ? -1 : ndcg_[depth] / static_cast<double>(points_);
}

double Quality::recall(std::size_t depth) const {
  return points_ == 0 ? -1 : recall_[depth] / static_cast<double>(points_);
}

}  // namespace gleaner
