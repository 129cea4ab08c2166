// The best neurons of one example so far, by descending score, then ascending neuron. Plain; one
// thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "schema/messages.hpp"

namespace gleaner {

// Neurons are offered in ascending order, so one that only equals a kept score comes after it.
class TopList {
 public:
  // `best` has room for `entries`.
  TopList(ScoredNeuron* best, std::uint32_t entries) : best_(best), entries_(entries) {}

  void offer(std::uint32_t first_neuron, std::span<const float> scores) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (!(scores[i] > threshold_)) [[likely]]
        continue;
      insert({first_neuron + static_cast<std::uint32_t>(i), scores[i]});
    }
  }

 private:
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

}  // namespace gleaner
