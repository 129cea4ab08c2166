// Exact evaluation: every neuron of some shards is scored for every example and the best k of each
// are kept, by descending score, then ascending neuron.
#pragma once

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

// The best neurons of one example so far, by descending score, then ascending neuron. Plain; one
// thread.

// Neurons are offered in ascending order, so one that only equals a kept score comes after it.
class TopList {
 public:
  // `best` has room for `entries`.
  TopList(ScoredNeuron* best, std::uint32_t entries) : best_(best), entries_(entries) {}

  void offer(std::uint32_t first_neuron, std::span<const float> scores) {
    std::size_t i = 0;
    // Some at a time, for hardly any is good enough, and this loop runs on vectors.
    for (; i + kTogether <= scores.size(); i += kTogether) {
      std::uint32_t above = 0;
      for (std::size_t k = 0; k < kTogether; ++k) above += scores[i + k] > threshold_ ? 1 : 0;
      if (above != 0) offer_each(first_neuron, scores, i, i + kTogether);
    }
    offer_each(first_neuron, scores, i, scores.size());
  }

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

  void insert(ScoredNeuron candidate) {
    std::uint32_t place = count_ < entries_ ? count_++ : entries_ - 1;
    for (; place > 0 && candidate.score > best_[place - 1].score; --place) {
      best_[place] = best_[place - 1];
    }
    best_[place] = candidate;
    if (count_ == entries_) threshold_ = best_[entries_ - 1].score;
  }

  ScoredNeuron* best_;
  std::uint32_t entries_;
  std::uint32_t count_ = 0;
  // Scores are finite, so this admits all until the list is full.
  float threshold_ = -std::numeric_limits<float>::infinity();
};

// `shards` ascend. Returns examples x min(k, neurons of the shards) entries; the examples' codes
// are within the bounds of row_checks.hpp. The same for any pool.
std::vector<ScoredNeuron> exact_top(std::span<const OutputShard* const> shards,
                                    const QuantizedActivations& codes, std::uint32_t top_k,
                                    const Kernels& kernels, ThreadPool& pool);

// Neurons of the shards, at most `top_k`: the entries an example of exact_top.
std::uint32_t exact_top_entries(std::span<const OutputShard* const> shards, std::uint32_t top_k);

}  // namespace gleaner
