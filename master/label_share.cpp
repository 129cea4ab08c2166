#include "master/label_share.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "common/natural_log.hpp"

namespace gleaner {
namespace {

constexpr double kCertain = 1e-7;  // a mixture is no closer to 0 or 1, so that its logit is finite

}  // namespace

TrainingPoints training_points(const PackedDataset& points) {
  return {static_cast<std::uint32_t>(points.points()), points.features(),
          [&points](std::uint32_t point) { return points.example(point); }};
}

std::vector<ScoredLabel> mixed_with_votes(std::span<const ScoredLabel> network,
                                          std::span<const LabelShare> votes, float weight,
                                          std::uint32_t top_k) {
  const std::vector<float> probabilities = probabilities_of(network);
  std::map<std::uint32_t, double> means;
  for (std::size_t i = 0; i < network.size(); ++i) {
    if (!std::isfinite(network[i].logit)) continue;
    means[network[i].label] = (1 - double{weight}) * probabilities[i];
  }
  for (const LabelShare& vote : votes) means[vote.label] += double{weight} * vote.share;
  std::vector<std::pair<double, std::uint32_t>> best;  // ascending pairs are the order wanted
  for (const auto& [label, mean] : means) best.emplace_back(-mean, label);
  const std::size_t kept = std::min<std::size_t>(top_k, best.size());
  std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<ScoredLabel> mixed;
  for (const auto& [mean, label] : std::span(best).first(kept)) {
    const double p = std::clamp(-mean, kCertain, 1 - kCertain);
    mixed.push_back({label, static_cast<float>(natural_log(p / (1 - p)))});
  }
  return mixed;
}

}  // namespace gleaner
