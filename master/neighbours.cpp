#include "master/neighbours.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "common/natural_log.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kLabelsPerPointMany = 2;  // of which a label says little
constexpr std::uint32_t kCentroidsVoting = 20;    // the nearest
constexpr double kCertain = 1e-7;  // a mixture is no closer to 0 or 1, so that its logit is finite

}  // namespace

Neighbours::Neighbours(const Points& points, std::uint32_t count)
    : count_(count), rarity_(points.features) {
  label_begin_.push_back(0);
  add_points(points);
  if (labels_.size() < kLabelsPerPointMany * this->points()) add_centroids(points);
}

Neighbours::Neighbours(const PackedDataset& points, std::uint32_t count)
    : Neighbours({static_cast<std::uint32_t>(points.points()), points.features(),
                  [&points](std::uint32_t point) { return points.example(point); }},
                 count) {}

void Neighbours::Index::open() {
  for (std::size_t f = 1; f < begin.size(); ++f) begin[f] += begin[f - 1];
  next.assign(begin.begin(), begin.end() - 1);
  entries.resize(begin.back());
}

void Neighbours::add_points(const Points& points) {
  points_.ids = points.count;
  points_.begin.assign(std::size_t{points.features} + 1, 0);
  for (std::uint32_t p = 0; p < points.count; ++p) {
    const ExampleView point = points.at(p);
    labels_.insert(labels_.end(), point.labels.begin(), point.labels.end());
    label_begin_.push_back(labels_.size());
    for (const std::uint32_t feature : point.features) points_.expect(feature);
  }
  for (std::size_t f = 0; f < rarity_.size(); ++f) {
    const auto having = static_cast<double>(points_.begin[f + 1]);
    // A feature that no training point has leads to none.
    if (having > 0) {
      rarity_[f] = static_cast<float>(natural_log(static_cast<double>(points.count) / having));
    }
  }
  points_.open();
  std::vector<float> weights;
  for (std::uint32_t p = 0; p < points.count; ++p) {
    const ExampleView point = points.at(p);
    weigh(point, weights);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      points_.add(point.features[i], {p, weights[i]});
    }
  }
}

void Neighbours::add_centroids(const Points& points) {
  // The points by label.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bearers;
  for (std::uint32_t p = 0; p < points.count; ++p) {
    for (std::uint64_t i = label_begin_[p]; i < label_begin_[p + 1]; ++i) {
      bearers.emplace_back(labels_[i], p);
    }
  }
  std::ranges::sort(bearers);
  if (bearers.empty()) return;
  centroids_.ids = bearers.back().first + 1;

  struct Entry {
    std::uint32_t feature, label;
    float weight;
  };

  std::vector<Entry> entries;
  std::vector<float> weights;
  std::map<std::uint32_t, double> sum;  // by feature
  for (auto bearer = bearers.begin(); bearer != bearers.end();) {
    const std::uint32_t label = bearer->first;
    sum.clear();
    for (; bearer != bearers.end() && bearer->first == label; ++bearer) {
      const ExampleView point = points.at(bearer->second);
      weigh(point, weights);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] != 0) sum[point.features[i]] += weights[i];
      }
    }
    // Of roots the squares are the values.
    double squares = 0;
    for (const auto& [feature, value] : sum) squares += std::abs(value);
    if (squares == 0) continue;
    for (const auto& [feature, value] : sum) {
      const double root = std::copysign(std::sqrt(std::abs(value) / squares), value);
      entries.push_back({feature, label, static_cast<float>(root)});
    }
  }
  centroids_.begin.assign(rarity_.size() + 1, 0);
  for (const Entry& entry : entries) centroids_.expect(entry.feature);
  centroids_.open();
  for (const Entry& entry : entries) centroids_.add(entry.feature, {entry.label, entry.weight});
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

void Neighbours::find(const Index& index, const ExampleView& example, std::uint32_t count,
                      Scratch& scratch) {
  if (scratch.nearness.size() < index.ids) scratch.nearness.resize(index.ids);
  for (std::size_t i = 0; i < scratch.weights.size(); ++i) {
    const float weight = scratch.weights[i];
    if (weight == 0) continue;
    const std::uint32_t feature = example.features[i];
    for (std::uint64_t e = index.begin[feature]; e < index.begin[feature + 1]; ++e) {
      scratch.nearness[index.entries[e].id] += weight * index.entries[e].nearness;
    }
  }
  // A heap whose front is the one to go first.
  const auto is_nearer = [](const Near& a, const Near& b) {
    return a.nearness != b.nearness ? a.nearness > b.nearness : a.id < b.id;
  };
  std::vector<Near>& near = scratch.near;
  near.clear();
  for (std::uint32_t id = 0; id < index.ids; ++id) {
    const Near found{id, std::exchange(scratch.nearness[id], 0.0F)};
    if (!(found.nearness > 0)) continue;
    if (near.size() == count) {
      if (!is_nearer(found, near.front())) continue;
      std::ranges::pop_heap(near, is_nearer);
      near.pop_back();
    }
    near.push_back(found);
    std::ranges::push_heap(near, is_nearer);
  }
  std::ranges::sort(near, is_nearer);
  scratch.squares = 0;
  for (const Near& found : near) scratch.squares += double{found.nearness} * found.nearness;
}

std::vector<LabelShare> Neighbours::shares(const ExampleView& example, Scratch& scratch) const {
  std::map<std::uint32_t, double> votes;  // by label
  const double part = have_centroids() ? 0.5 : 1.0;
  weigh(example, scratch.weights);
  find(points_, example, count_, scratch);
  for (const Near& point : scratch.near) {
    for (std::uint64_t i = label_begin_[point.id]; i < label_begin_[point.id + 1]; ++i) {
      votes[labels_[i]] += part * vote(point, scratch);
    }
  }
  if (have_centroids()) {
    find(centroids_, example, kCentroidsVoting, scratch);
    for (const Near& label : scratch.near) votes[label.id] += part * vote(label, scratch);
  }
  std::vector<LabelShare> shares;
  for (const auto& [label, share] : votes) shares.push_back({label, static_cast<float>(share)});
  std::ranges::stable_sort(shares, std::ranges::greater{}, &LabelShare::share);
  return shares;
}

std::vector<std::vector<LabelShare>> Neighbours::votes(std::span<const ExampleView> examples,
                                                       ThreadPool& pool) const {
  std::vector<std::vector<LabelShare>> all(examples.size());
  std::vector<Scratch> scratch(pool.threads());
  pool.parallel_for(examples.size(), [&](std::size_t i, unsigned worker) {
    all[i] = shares(examples[i], scratch[worker]);
  });
  return all;
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
