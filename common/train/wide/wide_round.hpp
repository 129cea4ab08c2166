// Trains a wide shard through the batches of a round. Holds the working memory of a thread, which
// exists only during the round.
//
// An example's active set has its true labels and the neurons whose score exceeds `wide_score_min`.
// The score is the bias and the sum over the lists of the example's features. A frequent label's
// bias alone may exceed that: its neuron is active in every example, since it would otherwise learn
// where it is true and never where it is not. With Sampling::kAll the set is every neuron.
//
// A feature's list has the neurons whose weight for it exceeds the fraction `wide_list_weight` of
// `wide_scale`, or of 16 if that is less. A row without such weights is trained by true labels
// alone, so its weights grow until it is listed. Like hash tables, the lists and the biases in
// these scores are renewed every `rehash_batches`. Between renewals active sets depend on no
// weight, so the sets of several batches are chosen first. Then each neuron is trained through
// these batches in order.
//
// Whether a neuron is active depends on its own row alone. So the trained rows do not depend on the
// number of shards.
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
  // The shard stands before `first`, a round's first batch. Configuration and plan outlive this
  // object.
  WideRound(const ModelConfig& config, const RunPlan& plan, std::shared_ptr<WideShard> shard,
            BatchIndex first);

  [[nodiscard]] BatchIndex next_batch() const { return next_; }

  [[nodiscard]] bool is_done() const { return next_ == end_; }

  // Takes next_batch(). Trains the shard on it now, or later together with the next batches.
  void train(const WideBatch& batch, float rate);
  // Trains the batches taken so far. train() calls it at each rebuild of the lists and at the
  // round's end.
  void flush();

  // The outcomes of the trained batches, in order.
  [[nodiscard]] std::span<const ShardOutcome> outcomes() const { return outcomes_; }

  // The outcome of the first batch, and the sum of all others. Requires is_done().
  [[nodiscard]] std::pair<ShardOutcome, ShardOutcome> sums() const;

  // Ends the round. Requires is_done().
  std::vector<SparseUpdate> commit() { return shard_->commit(); }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  struct Entry {
    std::uint32_t neuron = 0;
    float weight = 0;
  };

  // A feature's list in entries_. Its size is the number of entries in use.
  struct List {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };

  // An example that trains a neuron. If a neuron has several pairs with an example, the pair of
  // the true label sorts first.
  struct Pair {
    std::uint32_t neuron = 0;
    std::uint32_t key = 0;  // twice the index in kept_, plus 1 if the label is not true
  };

  // An example's true label in the shard.
  struct Truth {
    std::uint32_t example = 0;  // index in the batch
    std::uint32_t neuron = 0;
    friend auto operator<=>(const Truth&, const Truth&) = default;
  };

  void number_features();
  void rebuild_lists();
  void choose(const WideBatch& batch);
  // Keeps those features of the batch's examples that the shard has.
  void keep(const WideBatch& batch);
  // Fetches the lists of the next examples.
  void look_ahead(std::uint32_t example) const;
  // Adds up the weights in the example's lists in scores_. Returns how many neurons met_ names.
  std::size_t add_up(std::uint32_t example);
  // Adds the neurons whose scores exceed the least score. `truths`: of the example.
  void choose_listed(std::uint32_t example, std::span<const Truth> truths);

  void add(std::uint32_t neuron, std::uint32_t example, bool is_true) {
    pairs_.push_back({neuron, example * 2 + (is_true ? 0 : 1)});
  }

  // Where the features of a kept example begin.
  [[nodiscard]] std::size_t begin_of(std::uint32_t example) const {
    return example == 0 ? 0 : kept_[example - 1].end;
  }

  void sort_pairs();
  void train_neuron(std::uint32_t neuron, std::span<std::uint32_t> keys);

  const ModelConfig& config_;
  const RunPlan& plan_;
  std::shared_ptr<WideShard> shard_;
  BatchIndex next_;
  BatchIndex end_;
  std::vector<ShardOutcome> outcomes_;

  // Numbers the features that the shard's rows have.
  FeatureNumbers numbers_;
  AlignedVector<std::uint32_t> row_features_;  // parallel to the neurons' weights
  std::vector<std::size_t> row_begins_;        // neurons + 1: in row_features_
  AlignedVector<List> lists_;                  // features
  AlignedVector<Entry> entries_;
  bool are_lists_stale_ = true;

  // An example that is kept until it is trained.
  struct Kept {
    std::uint32_t end = 0;    // where its features end
    std::uint32_t batch = 0;  // index of its outcome
    float rate = 0;
  };

  std::vector<Kept> kept_;  // examples
  AlignedVector<std::uint32_t> features_;
  AlignedVector<float> values_;
  std::vector<Pair> pairs_;

  // Working memory.
  AlignedVector<std::uint32_t> places_;  // by feature: place in the neuron, from 1, or 0
  AlignedVector<float> scores_;          // by neuron: sum of listed weights; zero between examples
  AlignedVector<float> sums_min_;        // by neuron: the sum above which it is active
  std::vector<std::uint32_t> always_;    // neurons that are active without a listed weight
  std::vector<std::uint32_t> met_;
  std::vector<Truth> truths_;
  std::vector<std::uint32_t> pair_ends_;  // neurons
  std::vector<std::uint32_t> keys_;       // of the pairs, neuron by neuron
  std::vector<WideMatch> matches_;
};

}  // namespace gleaner
