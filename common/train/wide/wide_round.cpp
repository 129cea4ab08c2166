#include "common/train/wide/wide_round.hpp"

#include <algorithm>
#include <limits>

#include "common/result.hpp"

namespace gleaner {
namespace {

// Bounds of the batches that wait: enough pairs to pay for spreading a neuron's features out, and
// few enough examples for the caches.
constexpr std::size_t kPairsKept = 1u << 15;
constexpr std::size_t kFeaturesKept = 1u << 17;
// Replaces the sum of a neuron that is a true label of the example: below every least sum.
constexpr float kIsTrue = -std::numeric_limits<float>::infinity();
// The sum of a neuron that is active in every example begins with it: not zero, and too small to
// change a sum.
constexpr float kMet = std::numeric_limits<float>::min();
constexpr std::uint32_t kNoExample = ~0U;
// Longer start rows have more large weights, which training does not.
constexpr float kListScaleMax = 16;

}  // namespace

WideRound::WideRound(const ModelConfig& config, const RunPlan& plan,
                     std::shared_ptr<WideShard> shard, BatchIndex first)
    : config_(config),
      plan_(plan),
      shard_(std::move(shard)),
      next_(first),
      end_(plan.round_end(plan.round_of(first))),
      numbers_(config.features) {}

void WideRound::number_features() {
  const std::uint32_t neurons = shard_->neurons().size();
  for (std::uint32_t n = 0; n < neurons; ++n) numbers_.add(shard_->features(n));
  numbers_.number();
  row_begins_.assign(1, 0);
  for (std::uint32_t n = 0; n < neurons; ++n) {
    for (const std::uint32_t feature : shard_->features(n)) {
      row_features_.push_back(numbers_.of(feature));
    }
    row_begins_.push_back(row_features_.size());
  }
  // A list has room for all neurons with its feature.
  lists_.assign(numbers_.count(), {});
  for (const std::uint32_t feature : row_features_) ++lists_[feature].size;
  std::size_t entries = 0;
  for (List& list : lists_) {
    list.begin = static_cast<std::uint32_t>(entries);
    entries += list.size;
  }
  entries_.resize(entries);
  places_.resize(numbers_.count());
  scores_.resize(neurons);
  sums_min_.resize(neurons);
  pair_ends_.resize(neurons);
}

void WideRound::rebuild_lists() {
  const float least = config_.wide_list_weight * std::min(config_.wide_scale, kListScaleMax);
  for (List& list : lists_) list.size = 0;
  always_.clear();
  for (std::uint32_t n = 0; n + 1 < row_begins_.size(); ++n) {
    const std::size_t begin = row_begins_[n];
    const auto weights = std::span(shard_->weights(n), row_begins_[n + 1] - begin);
    sums_min_[n] = config_.wide_score_min - shard_->bias(n);
    if (sums_min_[n] < 0) always_.push_back(n);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      // Written so that a NaN is left out.
      if (!(weights[i] > least)) continue;
      List& list = lists_[row_features_[begin + i]];
      entries_[list.begin + list.size++] = {n, weights[i]};
    }
  }
}

void WideRound::train(const WideBatch& batch, float rate) {
  GLEANER_CHECK(batch.batch == next_ && !is_done());
  if (row_begins_.empty()) number_features();
  if (std::exchange(are_lists_stale_, false)) rebuild_lists();
  const std::size_t first = kept_.size();
  choose(batch);
  for (std::size_t i = first; i < kept_.size(); ++i) {
    kept_[i].batch = static_cast<std::uint32_t>(outcomes_.size());
    kept_[i].rate = rate;
  }
  outcomes_.push_back({.shard = shard_->id()});
  are_lists_stale_ = plan_.rehashes_after(next_++);
  if (are_lists_stale_ || pairs_.size() >= kPairsKept || features_.size() >= kFeaturesKept) flush();
}

void WideRound::keep(const WideBatch& batch) {
  std::size_t at = features_.size();
  features_.resize(at + batch.features.size() + 1);
  values_.resize(features_.size());
  std::size_t k = 0;
  for (const std::uint32_t end : batch.ends) {
    for (; k < end; ++k) {
      // A branch on whether the shard has the feature would be mispredicted.
      features_[at] = numbers_.of(batch.features[k]);
      values_[at] = batch.values[k];
      at += numbers_.has(batch.features[k]) ? 1 : 0;
    }
    kept_.push_back({.end = static_cast<std::uint32_t>(at)});
  }
  features_.resize(at);
  values_.resize(at);
}

void WideRound::choose(const WideBatch& batch) {
  const NeuronRange neurons = shard_->neurons();
  using Label = WideBatch::Label;
  const auto own = std::ranges::subrange(
      std::ranges::lower_bound(batch.labels, neurons.begin, {}, &Label::neuron),
      std::ranges::lower_bound(batch.labels, neurons.end, {}, &Label::neuron));
  const auto first = static_cast<std::uint32_t>(kept_.size());
  keep(batch);
  truths_.clear();
  for (const Label& label : own) {
    const std::uint32_t neuron = label.neuron - neurons.begin;
    add(neuron, first + label.example, true);
    truths_.push_back({label.example, neuron});
  }
  std::ranges::sort(truths_);
  auto next = truths_.begin();
  for (std::uint32_t e = 0; e < batch.examples(); ++e) {
    const auto begin = next;
    while (next != truths_.end() && next->example == e) ++next;
    if (config_.sampling == Sampling::kLsh) choose_listed(first + e, {begin, next});
    if (config_.sampling != Sampling::kAll) continue;
    for (std::uint32_t n = 0; n < neurons.size(); ++n) add(n, first + e, false);
  }
}

void WideRound::look_ahead(std::uint32_t example) const {
  for (std::uint32_t ahead = 2; ahead > 0; --ahead) {
    if (example + ahead >= kept_.size()) continue;
    for (std::size_t k = begin_of(example + ahead); k < kept_[example + ahead].end; ++k) {
      const List& list = lists_[features_[k]];
      ahead == 2 ? __builtin_prefetch(&list) : __builtin_prefetch(entries_.data() + list.begin);
    }
  }
}

std::size_t WideRound::add_up(std::uint32_t example) {
  // Copies of the pointers, which the loop's writes cannot change.
  float* const scores = scores_.data();
  const Entry* const entries = entries_.data();
  const List* const lists = lists_.data();
  std::size_t met = always_.size();
  if (met_.size() < met) met_.resize(2 * met);
  std::ranges::copy(always_, met_.begin());
  for (const std::uint32_t neuron : always_) scores[neuron] = kMet;
  for (std::size_t k = begin_of(example); k < kept_[example].end; ++k) {
    const float value = values_[k];
    if (!(value > 0)) continue;
    const List list = lists[features_[k]];
    if (met_.size() < met + list.size) met_.resize(2 * (met + list.size));
    std::uint32_t* const names = met_.data();
    for (std::uint32_t i = list.begin; i < list.begin + list.size; ++i) {
      float& score = scores[entries[i].neuron];
      names[met] = entries[i].neuron;
      met += score == 0 ? 1 : 0;
      score += value * entries[i].weight;
    }
  }
  return met;
}

void WideRound::choose_listed(std::uint32_t example, std::span<const Truth> truths) {
  look_ahead(example);
  const std::size_t met = add_up(example);
  for (const Truth& truth : truths) scores_[truth.neuron] = kIsTrue;
  for (const std::uint32_t neuron : std::span(met_).first(met)) {
    if (std::exchange(scores_[neuron], 0.0F) > sums_min_[neuron]) add(neuron, example, false);
  }
  for (const Truth& truth : truths) scores_[truth.neuron] = 0;
}

// A counting sort by neuron; the few pairs of a neuron are then sorted by example.
void WideRound::sort_pairs() {
  std::ranges::fill(pair_ends_, 0);
  for (const Pair& pair : pairs_) ++pair_ends_[pair.neuron];
  std::uint32_t begin = 0;
  for (std::uint32_t& end : pair_ends_) begin += std::exchange(end, begin);
  keys_.resize(pairs_.size());
  for (const Pair& pair : pairs_) keys_[pair_ends_[pair.neuron]++] = pair.key;
}

void WideRound::flush() {
  sort_pairs();
  std::uint32_t begin = 0;
  for (std::uint32_t neuron = 0; neuron < pair_ends_.size(); ++neuron) {
    const std::uint32_t end = pair_ends_[neuron];
    if (begin < end) train_neuron(neuron, std::span(keys_).subspan(begin, end - begin));
    begin = end;
  }
  shard_->measure_memory();
  kept_.clear();
  features_.clear();
  values_.clear();
  pairs_.clear();
}

void WideRound::train_neuron(std::uint32_t neuron, std::span<std::uint32_t> keys) {
  std::ranges::sort(keys);
  const auto features =
      std::span(row_features_)
          .subspan(row_begins_[neuron], row_begins_[neuron + 1] - row_begins_[neuron]);
  for (std::uint32_t i = 0; i < features.size(); ++i) places_[features[i]] = i + 1;
  std::uint32_t last = kNoExample;
  for (const std::uint32_t key : keys) {
    const std::uint32_t example = key / 2;
    if (example == std::exchange(last, example)) continue;
    const Kept& kept = kept_[example];
    matches_.clear();
    for (std::size_t k = begin_of(example); k < kept.end; ++k) {
      const std::uint32_t place = places_[features_[k]];
      if (place != 0) matches_.push_back({place - 1, values_[k]});
    }
    shard_->train(neuron, matches_, key % 2 == 0, kept.rate, outcomes_[kept.batch]);
  }
  for (const std::uint32_t feature : features) places_[feature] = 0;
}

std::pair<ShardOutcome, ShardOutcome> WideRound::sums() const {
  GLEANER_CHECK(is_done());
  ShardOutcome others{.shard = shard_->id()};
  for (const ShardOutcome& outcome : std::span(outcomes_).subspan(1)) {
    others.gradient_digest += outcome.gradient_digest;
    others.loss += outcome.loss;
    others.active += outcome.active;
  }
  return {outcomes_.front(), others};
}

std::uint64_t WideRound::memory_bytes() const {
  const std::size_t words = row_features_.capacity() + features_.capacity() + values_.capacity() +
                            places_.capacity() + scores_.capacity() + sums_min_.capacity() +
                            met_.capacity() + always_.capacity() + pair_ends_.capacity() +
                            keys_.capacity();
  const std::size_t pairs = lists_.capacity() + entries_.capacity() + row_begins_.capacity() +
                            pairs_.capacity() + truths_.capacity() + matches_.capacity();
  return numbers_.memory_bytes() + words * 4 + pairs * 8 + kept_.capacity() * sizeof(Kept) +
         outcomes_.capacity() * sizeof(ShardOutcome);
}

}  // namespace gleaner
