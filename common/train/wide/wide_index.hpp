// Exact answers of wide shards: for each feature, the neurons that have it and their weights,
// copied when the index is made. Any thread may ask.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/wide/feature_numbers.hpp"
#include "common/train/wide/wide_shard.hpp"
#include "common/work/units.hpp"

namespace gleaner {

class WideIndex {
 public:
  // `features` is the model's number. The shards, at least one, are loaded and consecutive.
  WideIndex(std::uint32_t features, std::span<const WideShard* const> shards);

  [[nodiscard]] std::uint32_t neurons() const { return static_cast<std::uint32_t>(biases_.size()); }

  // Working memory of a thread.
  struct Scratch {
    // The postings of a feature that are still to be read.
    struct List {
      std::size_t next = 0;
      std::size_t end = 0;
      float value = 0;
    };

    std::vector<List> lists;
    std::vector<float> scores;
  };

  // The best neurons of an example of unit length, by descending score, then ascending neuron in
  // the layer. `best` has room for at most neurons() entries and is filled.
  void top(const ExampleView& example, std::span<ScoredNeuron> best, Scratch& scratch) const;

 private:
  struct Posting {
    std::uint32_t neuron = 0;  // counted from the first shard's first neuron
    float weight = 0;
  };

  FeatureNumbers numbers_;
  std::vector<std::size_t> begins_;  // where each numbered feature's postings begin, and the end
  AlignedVector<Posting> postings_;  // ascending by neuron within a feature
  std::uint32_t first_neuron_;
  std::vector<float> biases_;  // neurons
};

}  // namespace gleaner
