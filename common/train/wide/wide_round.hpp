// A wide shard on its way through the batches of a round: what a thread needs besides the shard and
// the batches, which it has while it trains and no longer.
//
// An example's active set in the shard: its true labels; the shard's part of `active_cap` neurons
// whose weights, of those in the short lists of the example's features, add up to most; and the
// true labels of `random_negatives` other examples of the batch, drawn with replacement, since
// frequent labels have no large weights and are found by no list. With Sampling::kAll it is every
// neuron, with kRandom true labels and drawn ones alone.
//
// A feature's short list has the `feature_list / output_shards` largest positive weights of the
// shard, one at least, and of equal ones that of the lower neuron. The lists are made again as
// weights change, as hash tables are. Between these times active sets depend on no weight: so those
// of several batches are chosen first, and then trained neuron by neuron, each neuron through the
// batches in order.
//
// One thread at a time; threads may take turns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/wide/feature_numbers.hpp"
#include "common/train/wide/wide_batch.hpp"
#include "common/train/wide/wide_shard.hpp"

namespace gleaner {

class WideRound {
 public:
  // The shard stands before `first`, a round's first batch. Configuration and plan outlive this.
  WideRound(const ModelConfig& config, const RunPlan& plan, std::shared_ptr<WideShard> shard,
            BatchIndex first);

  [[nodiscard]] BatchIndex next_batch() const { return next_; }

  [[nodiscard]] bool is_done() const { return next_ == end_; }

  // Trains the shard on next_batch(), or keeps that until a few batches are there.
  void train(const WideBatch& batch, float rate);
  // Trains what was kept. train() does so in time: at a change of the lists, at the round's end.
  void flush();

  // One a batch that has been trained, in order.
  [[nodiscard]] std::span<const ShardOutcome> outcomes() const { return outcomes_; }

  // The outcome of the first batch, and that of all others together. Requires is_done().
  [[nodiscard]] std::pair<ShardOutcome, ShardOutcome> sums() const;

  // Ends the round. Requires is_done().
  std::vector<SparseUpdate> commit() { return shard_->commit(); }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  struct Entry {
    std::uint32_t neuron = 0;
    float weight = 0;
  };

  // Where a feature's short list is, which is as long as the entries that are in use.
  struct List {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };

  // An example trains a neuron: by its place among those that are kept. Of equal ones that of a
  // true label comes first.
  struct Pair {
    std::uint32_t neuron = 0;
    std::uint32_t key = 0;  // twice the place, and 1 if the label is not true
  };

  // A label that an example has in the shard.
  struct Truth {
    std::uint32_t example = 0;  // of the batch
    std::uint32_t neuron = 0;
    friend auto operator<=>(const Truth&, const Truth&) = default;
  };

  void number_features();
  void rebuild_lists();
  void choose(const WideBatch& batch);
  // Keeps the features of the batch's examples that the shard has.
  void keep(const WideBatch& batch);
  // Fetches the lists of the examples that come next.
  void look_ahead(std::uint32_t example) const;
  // Adds up what the lists of an example say in scores_, and returns how many neurons met_ names.
  std::size_t add_up(std::uint32_t example);
  // Adds the neurons that answer most. `truths`: of the example.
  void choose_listed(std::uint32_t example, std::span<const Truth> truths);

  void add(std::uint32_t neuron, std::uint32_t example, bool is_true) {
    pairs_.push_back({neuron, example * 2 + (is_true ? 0 : 1)});
  }

  // Where the features of an example begin that is kept.
  [[nodiscard]] std::size_t begin_of(std::uint32_t example) const {
    return example == 0 ? 0 : kept_[example - 1].end;
  }

  void sort_pairs();
  void train_neuron(std::uint32_t neuron, std::span<std::uint32_t> keys);

  const ModelConfig& config_;
  const RunPlan& plan_;
  std::shared_ptr<WideShard> shard_;
  const std::size_t list_entries_;  // most in a list
  const std::size_t listed_;        // most that lists add to an active set
  BatchIndex next_;
  BatchIndex end_;
  std::vector<ShardOutcome> outcomes_;

  // Features are numbered through those that the shard's rows have.
  FeatureNumbers numbers_;
  AlignedVector<std::uint32_t> row_features_;  // parallel to the neurons' weights
  std::vector<std::size_t> row_begins_;        // neurons + 1: in row_features_
  AlignedVector<List> lists_;                  // features
  AlignedVector<Entry> entries_;
  bool are_lists_stale_ = true;

  // An example that is kept until it is trained.
  struct Kept {
    std::uint32_t end = 0;    // of its features
    std::uint32_t batch = 0;  // the place of its outcome
    float rate = 0;
  };

  std::vector<Kept> kept_;  // examples
  AlignedVector<std::uint32_t> features_;
  AlignedVector<float> values_;
  std::vector<Pair> pairs_;

  // Working memory.
  AlignedVector<std::uint32_t> places_;  // features: among the neuron's, from 1 on; else 0
  AlignedVector<float> scores_;          // neurons: zero between examples
  std::vector<std::uint32_t> met_;
  std::vector<Entry> best_;
  std::vector<Truth> truths_;
  std::vector<std::uint32_t> pair_ends_;  // neurons
  std::vector<std::uint32_t> keys_;       // of the pairs, neuron by neuron
  std::vector<WideMatch> matches_;
};

}  // namespace gleaner
