#include "tools/neighbours.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tools/dataset_console.hpp"
#include "tools/predict_points.hpp"

namespace gleaner {
namespace {

constexpr double kCertain = 1e-7;  // a mixture is no closer to 0 or 1, so that its logit is finite

}  // namespace

Result<Neighbours> Neighbours::read(const std::string& path, const TextOptions& options,
                                    std::uint32_t count) {
  if (path == kStandardInput) {
    return Error{ErrorCode::kInvalidArgument, "--neighbours wants a file: standard input is none"};
  }
  auto points = PredictPoints::open(path, options, {});
  if (!points) return points.error();
  Neighbours neighbours;
  neighbours.count_ = count;
  neighbours.label_begin_.push_back(0);
  neighbours.rarity_.resize(options.limits->features);
  std::vector<std::uint64_t> begin = {0};
  std::vector<std::uint32_t> features;
  std::vector<float> values;
  IndexedPoint point;
  ProgressLine progress("Reading");
  for (;;) {
    const Result<bool> has_point = (*points)->next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) break;
    const Point& p = point.point;
    neighbours.labels_.insert(neighbours.labels_.end(), p.labels.begin(), p.labels.end());
    neighbours.label_begin_.push_back(neighbours.labels_.size());
    features.insert(features.end(), p.features.begin(), p.features.end());
    values.insert(values.end(), p.values.begin(), p.values.end());
    begin.push_back(features.size());
    progress.show(begin.size(), (*points)->announced_points().value_or(0), "neighbours");
  }
  neighbours.index(begin, features, values);
  return neighbours;
}

void Neighbours::index(std::span<const std::uint64_t> begin,
                       std::span<const std::uint32_t> features, std::span<const float> values) {
  entry_begin_.assign(rarity_.size() + 1, 0);
  for (const std::uint32_t feature : features) ++entry_begin_[feature + std::size_t{1}];
  for (std::size_t f = 0; f < rarity_.size(); ++f) {
    const auto having = static_cast<double>(entry_begin_[f + 1]);
    // A feature that no training point has leads to none.
    if (having > 0)
      rarity_[f] = static_cast<float>(std::log(static_cast<double>(points()) / having));
    entry_begin_[f + 1] += entry_begin_[f];
  }
  entries_.resize(features.size());
  std::vector<std::uint64_t> next(entry_begin_.begin(), entry_begin_.end() - 1);
  std::vector<float> weights;
  for (std::uint32_t p = 0; p + std::size_t{1} < begin.size(); ++p) {
    const auto own = features.subspan(begin[p], begin[p + 1] - begin[p]);
    weigh(own, values.subspan(begin[p], own.size()), weights);
    for (std::size_t i = 0; i < own.size(); ++i) entries_[next[own[i]]++] = {p, weights[i]};
  }
}

void Neighbours::weigh(std::span<const std::uint32_t> features, std::span<const float> values,
                       std::vector<float>& weights) const {
  weights.assign(features.size(), 0.0F);
  double squares = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i] >= rarity_.size()) continue;
    weights[i] = std::copysign(std::sqrt(std::abs(values[i])), values[i]) * rarity_[features[i]];
    squares += double{weights[i]} * weights[i];
  }
  if (squares == 0) return;
  const auto scale = static_cast<float>(1 / std::sqrt(squares));
  for (float& weight : weights) weight *= scale;
}

void Neighbours::find(const ExampleView& example, Scratch& scratch) const {
  scratch.nearness.resize(points());
  std::vector<float> weights;
  weigh(example.features, example.values, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const std::uint32_t feature = example.features[i];
    for (std::uint64_t e = entry_begin_[feature]; e < entry_begin_[feature + 1]; ++e) {
      scratch.nearness[entries_[e].point] += weights[i] * entries_[e].nearness;
    }
  }
  // A heap whose front is the one to go first.
  const auto is_nearer = [](const Near& a, const Near& b) {
    return a.nearness != b.nearness ? a.nearness > b.nearness : a.point < b.point;
  };
  std::vector<Near>& near = scratch.near;
  near.clear();
  for (std::uint32_t p = 0; p < scratch.nearness.size(); ++p) {
    const Near found{p, std::exchange(scratch.nearness[p], 0.0F)};
    if (!(found.nearness > 0)) continue;
    if (near.size() == count_) {
      if (!is_nearer(found, near.front())) continue;
      std::ranges::pop_heap(near, is_nearer);
      near.pop_back();
    }
    near.push_back(found);
    std::ranges::push_heap(near, is_nearer);
  }
  std::ranges::sort(near, is_nearer);
}

std::vector<LabelShare> Neighbours::shares(std::span<const Near> near) const {
  std::map<std::uint32_t, double> votes;
  double all = 0;
  for (const Near& neighbour : near) {
    const double weight = double{neighbour.nearness} * neighbour.nearness;
    all += weight;
    for (std::uint64_t i = label_begin_[neighbour.point]; i < label_begin_[neighbour.point + 1];
         ++i) {
      votes[labels_[i]] += weight;
    }
  }
  std::vector<LabelShare> shares;
  for (const auto& [label, weight] : votes) {
    shares.push_back({label, static_cast<float>(weight / all)});
  }
  std::ranges::stable_sort(shares, std::ranges::greater{}, &LabelShare::share);
  return shares;
}

std::vector<std::vector<LabelShare>> Neighbours::votes(std::span<const ExampleView> examples,
                                                       ThreadPool& pool) const {
  std::vector<std::vector<LabelShare>> all(examples.size());
  std::vector<Scratch> scratch(pool.threads());
  pool.parallel_for(examples.size(), [&](std::size_t i, unsigned worker) {
    find(examples[i], scratch[worker]);
    all[i] = shares(scratch[worker].near);
  });
  return all;
}

std::vector<ScoredLabel> mixed_with_votes(std::span<const ScoredLabel> network,
                                          std::span<const LabelShare> votes, std::uint32_t top_k) {
  const std::vector<float> probabilities = probabilities_of(network);
  std::map<std::uint32_t, double> sums;
  for (std::size_t i = 0; i < network.size(); ++i) {
    if (std::isfinite(network[i].logit)) sums[network[i].label] = double{probabilities[i]};
  }
  for (const LabelShare& vote : votes) sums[vote.label] += double{vote.share};
  std::vector<std::pair<double, std::uint32_t>> best;  // ascending pairs are the order wanted
  for (const auto& [label, sum] : sums) best.emplace_back(-sum, label);
  const std::size_t kept = std::min<std::size_t>(top_k, best.size());
  std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(kept));
  std::vector<ScoredLabel> mixed;
  for (const auto& [sum, label] : std::span(best).first(kept)) {
    const double p = std::clamp(-sum / 2, kCertain, 1 - kCertain);
    mixed.push_back({label, static_cast<float>(std::log(p / (1 - p)))});
  }
  return mixed;
}

}  // namespace gleaner
