#include "master/neighbours.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "common/keep_best.hpp"
#include "common/natural_log.hpp"

namespace gleaner {
Neighbours::Neighbours(const TrainingPoints& points, std::uint32_t count)
    : count_(count), rarity_(points.features), entry_begin_(std::size_t{points.features} + 1) {
  label_begin_.push_back(0);
  for (std::uint32_t p = 0; p < points.count; ++p) {
    const ExampleView point = points.at(p);
    labels_.insert(labels_.end(), point.labels.begin(), point.labels.end());
    label_begin_.push_back(labels_.size());
    for (const std::uint32_t feature : point.features) ++entry_begin_[feature + std::size_t{1}];
  }
  for (std::size_t f = 0; f < rarity_.size(); ++f) {
    const auto having = static_cast<double>(entry_begin_[f + 1]);
    // A feature that no training point has leads to none.
    if (having > 0) {
      rarity_[f] = static_cast<float>(natural_log(static_cast<double>(points.count) / having));
    }
    entry_begin_[f + 1] += entry_begin_[f];
  }
  entries_.resize(entry_begin_.back());
  std::vector<std::uint64_t> next(entry_begin_.begin(), entry_begin_.end() - 1);
  std::vector<float> weights;
  for (std::uint32_t p = 0; p < points.count; ++p) {
    const ExampleView point = points.at(p);
    weigh(point, weights);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      entries_[next[point.features[i]]++] = {p, weights[i]};
    }
  }
}

void Neighbours::weigh(const ExampleView& example, std::vector<float>& weights) const {
  weights.assign(example.features.size(), 0.0F);
  double squares = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint32_t feature = example.features[i];
    if (feature >= rarity_.size()) continue;
    const float value = example.values[i];
    weights[i] = std::copysign(std::sqrt(std::abs(value)), value) * rarity_[feature];
    squares += double{weights[i]} * weights[i];
  }
  if (squares == 0) return;
  const auto scale = static_cast<float>(1 / std::sqrt(squares));
  for (float& weight : weights) weight *= scale;
}

void Neighbours::find(const ExampleView& example, Scratch& scratch) const {
  scratch.nearness.resize(points());
  std::vector<float> weights;
  weigh(example, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const std::uint32_t feature = example.features[i];
    for (std::uint64_t e = entry_begin_[feature]; e < entry_begin_[feature + 1]; ++e) {
      scratch.nearness[entries_[e].point] += weights[i] * entries_[e].nearness;
    }
  }
  const auto is_nearer = [](const Near& a, const Near& b) {
    return a.nearness != b.nearness ? a.nearness > b.nearness : a.point < b.point;
  };
  std::vector<Near>& near = scratch.near;
  near.clear();
  for (std::uint32_t p = 0; p < scratch.nearness.size(); ++p) {
    const Near found{p, std::exchange(scratch.nearness[p], 0.0F)};
    if (found.nearness > 0) keep_best(near, count_, found, is_nearer);
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

}  // namespace gleaner
