// The wide shards that are held, trained together: one index over all of them, in which each
// example's neurons are looked up once. What a shard comes to is the same whichever other shards
// are here. One caller at a time; loops run on the pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/limits.hpp"
#include "common/model/model_config.hpp"
#include "common/thread_pool.hpp"
#include "common/train/active_set.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/wide_shard.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Which neurons a feature speaks for, over all wide shards that are held: the posting list of each
// feature, and a short list of the neurons with the largest weights for it, from which active
// neurons are chosen. The short lists are made again as weights change, as hash tables are.
//
// A shard's part of a short list depends on that shard alone: its `feature_list / output_shards`
// largest positive weights, one at least, and of equal ones that of the lower neuron.
//
// Neurons are numbered through the shards that are held, in order. One caller at a time; loops run
// on the pool.
class WideIndex {
 public:
  struct Entry {
    std::uint32_t neuron = 0;
    float weight = 0;
  };

  // `config` and `pool` outlive the index.
  WideIndex(const ModelConfig& config, ThreadPool& pool) : config_(config), pool_(pool) {}

  // Makes these, ascending, the shards that are held; they are loaded, and outlive the index or the
  // next call.
  void hold(std::span<const WideShard* const> shards);

  [[nodiscard]] std::span<const WideShard* const> shards() const { return shards_; }

  // The number of a shard's first neuron; shards().size(): of all neurons.
  [[nodiscard]] std::uint32_t first_neuron(std::size_t place) const { return firsts_[place]; }

  [[nodiscard]] std::uint32_t neurons() const { return firsts_.back(); }

  // The place of the shard that has the neuron.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t neuron) const { return places_[neuron]; }

  // Makes the short lists again, of the weights that the shards last named for them.
  void rebuild_lists();

  [[nodiscard]] std::span<const Entry> list(std::uint32_t feature) const {
    const Lists& lists = lists_[feature / kFeaturesPerChunk];
    const std::size_t index = feature % kFeaturesPerChunk;
    return std::span(lists.entries)
        .subspan(lists.ends[index], lists.ends[index + 1] - lists.ends[index]);
  }

  // The best `top_k` neurons of the shards at `places`, by exact scores, of each of these examples,
  // which have unit length: examples x min(top_k, their neurons), by descending score, then
  // ascending neuron in the layer.
  [[nodiscard]] std::vector<ScoredNeuron> exact_top(std::span<const std::size_t> places,
                                                    std::span<const ExampleView> examples,
                                                    std::uint32_t top_k);

  // Weights have changed: exact scores are to see them.
  void mark_weights_changed() { weights_ = {}; }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kFeaturesPerChunk = 1024;
  static constexpr std::uint32_t kBlockNeurons = 4096;

  // The short lists of some features that follow each other.
  struct Lists {
    std::vector<std::uint32_t> ends;  // features + 1
    AlignedVector<Entry> entries;
  };

  // Where a neuron lists the feature of one of its postings is kept in 16 bits; further on it is
  // looked up.
  static constexpr std::uint16_t kFar = 0xffff;

  // A posting's place among its neuron's features.
  [[nodiscard]] std::uint32_t index_of(std::size_t posting) const {
    return indices_[posting] != kFar ? indices_[posting] : far_index_of(posting);
  }

  [[nodiscard]] std::uint32_t far_index_of(std::size_t posting) const;

  [[nodiscard]] float weight_of(std::size_t posting) const {
    const std::uint32_t neuron = posting_neurons_[posting];
    const std::size_t place = places_[neuron];
    return shards_[place]->weights(neuron - firsts_[place])[index_of(posting)];
  }

  [[nodiscard]] float listed_weight_of(std::size_t posting) const {
    const std::uint32_t neuron = posting_neurons_[posting];
    const std::size_t place = places_[neuron];
    return shards_[place]->listed_weight(neuron - firsts_[place], index_of(posting));
  }

  // An example's exact scores, some neurons after the other: its features' posting lists are read
  // on from where they were left, so that the scores in hand stay in the first cache level.
  class Sums {
   public:
    // `index` has read its weights.
    void begin(const WideIndex& index, const ExampleView& example);
    // Adds up the scores of the neurons from `first` on, none of which was asked before, to `end`;
    // valid until the next call. `biases`: of all.
    std::span<const float> add(std::span<const float> biases, std::uint32_t first,
                               std::uint32_t end);

   private:
    // A feature's postings that are still to be read.
    struct List {
      std::size_t next = 0;
      std::size_t end = 0;
      float value = 0;
    };

    const WideIndex* index_ = nullptr;
    std::vector<List> lists_;
    std::vector<float> scores_;
  };

  // `entries` is working memory.
  void rebuild(std::uint32_t first_feature, std::vector<Entry>& entries, Lists& lists) const;
  void read_weights();

  const ModelConfig& config_;
  ThreadPool& pool_;
  std::vector<const WideShard*> shards_;
  std::vector<std::uint32_t> firsts_{0};
  std::vector<std::uint32_t> places_;  // neurons
  std::vector<std::size_t> ends_;      // features + 1: of their postings
  // A posting has its neuron, through all shards and ascending within a feature, its place among
  // the neuron's features, and its weight, which is there once it has been read.
  AlignedVector<std::uint32_t> posting_neurons_;
  AlignedVector<std::uint16_t> indices_;
  AlignedVector<float> weights_;
  std::vector<Lists> lists_;
};

// Chooses which neurons of the wide shards that are held each example of a batch trains.
//
// An example's active set in a shard: its true labels; the shard's part of `active_cap` neurons
// whose weights, of those in the short lists of the example's features, add up to most; and the
// true labels of `random_negatives` other examples of the batch, drawn with replacement, since
// frequent labels have no large weights and are found by no list. With Sampling::kAll it is every
// neuron, with kRandom true labels and drawn ones alone. A shard's set is the same whichever other
// shards are held.
//
// One chooser a thread; reused from batch to batch.

// A batch to be trained.
struct WideBatch {
  BatchIndex batch = 0;
  std::span<const ExampleView> examples;  // of unit length
  const Positives* positives = nullptr;   // that fall in the shards that are asked
  float rate = 0;
};

class alignas(kCacheLine) WideChooser {
 public:
  explicit WideChooser(const ModelConfig& config) : config_(config) {}

  // The pairs of some consecutive examples, for each shard in the order of the examples.
  // `is_asked`: by the place of a shard, whether it is to be trained.
  void choose(const WideBatch& batch, const WideIndex& index,
              std::span<const std::uint8_t> is_asked, ExampleRange examples);

  // The pairs of the shard at `place`.
  [[nodiscard]] std::span<const WidePair> pairs(std::size_t place) const { return pairs_[place]; }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  struct Candidate {
    std::uint32_t neuron = 0;
    float score = 0;
  };

  void add(const WideIndex& index, std::uint32_t neuron, std::uint32_t example, bool is_true);
  void add_labels(const WideBatch& batch, const WideIndex& index, std::uint32_t of,
                  std::uint32_t example, bool is_true);
  void add_listed(const WideIndex& index, std::span<const std::uint8_t> is_asked,
                  const ExampleView& view, std::uint32_t example);
  void add_all(const WideIndex& index, std::span<const std::uint8_t> is_asked,
               std::uint32_t example);

  const ModelConfig& config_;
  std::vector<std::vector<WidePair>> pairs_;  // by shard
  std::uint32_t turn_ = 0;                    // one an example, from 1 on
  std::vector<std::uint32_t> last_turns_;     // neurons: the last example that has it
  std::vector<float> scores_;                 // neurons: zero between examples
  std::vector<std::uint32_t> met_;
  std::vector<Candidate> best_;        // shards x their part of the cap
  std::vector<std::uint32_t> counts_;  // of them, by shard
};

class WideLayer {
 public:
  // `config` and `pool` outlive the layer.
  WideLayer(const ModelConfig& config, ThreadPool& pool);

  // Makes these, ascending, the shards that are held. They are loaded, and outlive the layer or the
  // next call.
  void hold(std::span<WideShard* const> shards);

  // The short lists are made again before the next step.
  void mark_lists_stale() { are_lists_stale_ = true; }

  // Trains some of the shards that are held, ascending, on a batch. `outcomes`: one a shard.
  void train(const WideBatch& batch, std::span<WideShard* const> shards,
             std::span<ShardOutcome> outcomes);

  // As WideIndex::exact_top, of these shards, ascending.
  std::vector<ScoredNeuron> exact_top(std::span<WideShard* const> shards,
                                      std::span<const ExampleView> examples, std::uint32_t top_k);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  // The places of these among those that are held.
  void ask(std::span<WideShard* const> shards);

  ThreadPool& pool_;
  WideIndex index_;
  bool are_lists_stale_ = true;
  std::vector<WideChooser> choosers_;   // one a thread
  std::vector<WideScratch> scratch_;    // one a thread
  std::vector<std::size_t> places_;     // of the shards that are asked
  std::vector<std::uint8_t> is_asked_;  // by place
};

}  // namespace gleaner
