// Exact evaluation: scores every neuron of some shards for every example and keeps the best k of
// each example, by descending score, then ascending neuron.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/thread_pool.hpp"
#include "common/train/kernels.hpp"
#include "common/train/output_shard.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/units.hpp"

namespace gleaner {

// The best neurons of one example so far, in a heap until finish() sorts them. Neurons must be
// offered in ascending order: of equal scores the lower neuron's is better. One thread.
class TopList {
 public:
  // `best` must have room for `entries`.
  TopList(ScoredNeuron* best, std::uint32_t entries) : best_(best), entries_(entries) {}

  void offer(std::uint32_t first_neuron, std::span<const float> scores) {
    std::size_t i = 0;
    // Compares kTogether scores at a time: hardly any score is good enough, and this loop runs on
    // vectors.
    for (; i + kTogether <= scores.size(); i += kTogether) {
      std::uint32_t above = 0;
      for (std::size_t k = 0; k < kTogether; ++k) above += scores[i + k] > threshold_ ? 1 : 0;
      if (above != 0) offer_each(first_neuron, scores, i, i + kTogether);
    }
    offer_each(first_neuron, scores, i, scores.size());
  }

  // Sorts the neurons, the best first. Nothing is offered afterwards.
  void finish() { std::sort_heap(best_, best_ + count_, is_better); }

 private:
  static constexpr std::size_t kTogether = 32;

  void offer_each(std::uint32_t first_neuron, std::span<const float> scores, std::size_t begin,
                  std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (scores[i] > threshold_) {
        insert({first_neuron + static_cast<std::uint32_t>(i), scores[i]});
      }
    }
  }

  static bool is_better(const ScoredNeuron& a, const ScoredNeuron& b) {
    return a.score > b.score || (a.score == b.score && a.neuron < b.neuron);
  }

  void insert(ScoredNeuron candidate) {
    if (count_ == entries_) std::pop_heap(best_, best_ + count_--, is_better);
    best_[count_++] = candidate;
    std::push_heap(best_, best_ + count_, is_better);
    if (count_ == entries_) threshold_ = best_[0].score;
  }

  ScoredNeuron* best_;
  std::uint32_t entries_;
  std::uint32_t count_ = 0;
  // Scores are finite, so every score is admitted until the list is full.
  float threshold_ = -std::numeric_limits<float>::infinity();
};

// `shards` ascend. Returns examples x exact_top_entries() entries, the same for any pool. `codes`
// are the examples' quantized activations, within the bounds of row_checks.hpp.
std::vector<ScoredNeuron> exact_top(std::span<const OutputShard* const> shards,
                                    const QuantizedActivations& codes, std::uint32_t top_k,
                                    const Kernels& kernels, ThreadPool& pool);

// Entries per example of exact_top: `top_k`, or the number of neurons of the shards if that is
// less.
std::uint32_t exact_top_entries(std::span<const OutputShard* const> shards, std::uint32_t top_k);

}  // namespace gleaner
