#include "tools/quality.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gleaner {
namespace {

constexpr double kHeadShare = 0.5;
constexpr double kTailShare = 0.1;

double discount(std::size_t rank) {
  return 1 / std::log2(static_cast<double>(rank) + 2);
}

}  // namespace

FrequencyClasses::FrequencyClasses(std::span<const std::uint32_t> label_counts)
    : classes_(label_counts.size()) {
  std::vector<std::uint32_t> order(label_counts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order,
                           [&](auto a, auto b) { return label_counts[a] > label_counts[b]; });
  double total = 0;
  for (const std::uint32_t count : label_counts) total += count;
  double before = 0;  // occurrences of labels that are more frequent
  for (const std::uint32_t label : order) {
    const std::uint32_t count = label_counts[label];
    auto own = FrequencyClass::kTorso;
    if (before >= (1 - kTailShare) * total) own = FrequencyClass::kTail;
    if (before < kHeadShare * total) own = FrequencyClass::kHead;
    before += count;
    classes_[label] = own;
    Extent& extent = extents_[static_cast<std::size_t>(own)];
    if (extent.labels++ == 0) extent.points_max = count;
    extent.points_min = count;
  }
}

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
