#include "tools/predict/ranking_quality.hpp"

#include <algorithm>

#include "common/model/ndcg.hpp"

namespace gleaner {
void Quality::add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked) {
  if (labels.empty()) return;
  sums_.add(labels, ranked);
  ++points_;
  for (const std::uint32_t label : labels) {
    ++by_class_[static_cast<std::size_t>(classes_.of(label))].true_labels;
  }
  for (std::size_t d = 0; d < kDepths.size(); ++d) {
    std::size_t hits = 0;
    for (std::size_t rank = 0; rank < std::min<std::size_t>(kDepths[d], ranked.size()); ++rank) {
      if (!std::ranges::binary_search(labels, ranked[rank])) continue;
      ++hits;
      ++by_class_[static_cast<std::size_t>(classes_.of(ranked[rank]))].hits[d];
    }
    ndcg_[d] += ndcg_at(kDepths[d], labels, ranked);
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
