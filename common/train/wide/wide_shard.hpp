// An output shard without a hidden layer: its neurons' wide rows, and the training step on some
// neurons. A neuron's wide row is a sparse row of weights directly over features (the wide part of
// Cheng et al. 2016, arXiv 1606.07792), cut into stored rows of kWideWeights weights.
//
// score(x) = bias + sum over features j of both x and the row of x_j * weight_j
//
// A step goes neuron by neuron, and within a neuron example by example: plain SGD on the logistic
// loss, without optimizer state. No neuron reads another, so threads may divide the neurons.
//
// A label's row begins as the sum of its examples. Training on one of these examples subtracts the
// example's own part from the score, because the row would otherwise have memorised it. The state
// of a neuron's first stored row is the factor of a feature's square in that part
// (storage/keep/wide_start.hpp). A label with a single example does not learn from that example. A
// label without examples, which begins with its words, is a negative only of examples that it would
// answer: all others would only tell it that nobody has used it yet.
//
// One thread at a time; threads may take turns.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/limits.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/kernels.hpp"
#include "common/train/leased_shards.hpp"
#include "common/work/units.hpp"

namespace gleaner {

// A match of a neuron and an example: the weight's place in the neuron, and the feature's value.
struct WideMatch {
  std::uint32_t at = 0;
  float value = 0;
};

// The stored rows of a wide shard in memory. A row takes only the weights that it uses, and rows
// lie one behind the other.
//
// touch() precedes each change of a row. Once a round, it copies the row as the last commit left
// it. The copies outlive the commit and allow the same steps back as in OutputRows.
//
// Rows are appended in any order, each once, then laid out. One thread at a time; const members:
// any thread.
class WideRows {
 public:
  // `no_feature` fills a stored row after its last feature.
  WideRows(std::uint32_t rows, std::uint32_t no_feature);

  // `values` is a row as stored: kWideWeights weights, then the bias. `features`: one per weight.
  void append(std::uint32_t row, std::span<const float> values,
              std::span<const std::uint32_t> features, float state);
  // Ends appending: puts the rows in ascending order and frees spare memory.
  void lay_out();

  [[nodiscard]] std::uint32_t rows() const { return static_cast<std::uint32_t>(sizes_.size()); }

  [[nodiscard]] bool is_loaded(std::uint32_t row) const { return sizes_[row] != kNotLoaded; }

  // The row's first index in weights().
  [[nodiscard]] std::size_t begin(std::uint32_t row) const { return begins_[row]; }

  // The number of the row's weights in memory; further weights are 0.
  [[nodiscard]] std::uint32_t size(std::uint32_t row) const {
    return is_loaded(row) ? sizes_[row] : 0;
  }

  [[nodiscard]] float* weights() { return weights_.data(); }

  [[nodiscard]] const float* weights() const { return weights_.data(); }

  // Parallel to the weights.
  [[nodiscard]] const std::uint32_t* features() const { return features_.data(); }

  [[nodiscard]] float& bias(std::uint32_t row) { return ends_[row].bias; }

  [[nodiscard]] float bias(std::uint32_t row) const { return ends_[row].bias; }

  [[nodiscard]] float state(std::uint32_t row) const { return ends_[row].state; }

  // Must precede any change of the row.
  void touch(std::uint32_t row) {
    if (open_at_[row] == kUnchanged) keep(row);
  }

  // The row as stored.
  void read(std::uint32_t row, std::span<float> values) const;

  // Rows touched since the last commit, ascending.
  [[nodiscard]] std::vector<std::uint32_t> touched() const;

  // As OutputRows::commit_row, end_commit and step_back.
  void commit_row(std::uint32_t row, SparseUpdate& update, const Kernels& kernels);
  void end_commit();
  [[nodiscard]] bool step_back(std::uint32_t commits);

  // The digest of the shard at its last commit, equal to the store's. Requires no touched row.
  [[nodiscard]] ShardDigest digest(ShardId shard) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint8_t kNotLoaded = 0xff;
  // Means that a row has no record. Places count pairs of floats, so 32 bits are enough.
  static constexpr std::uint32_t kUnchanged = ~0U;
  static_assert(std::uint64_t{kWideRowsMax} * (kWideWeights + 2) / 2 < kUnchanged);

  // The end of a row: its values that follow the weights.
  struct End {
    float bias = 0;
    float state = 0;
  };

  // Rows as a commit left them, in the order of their first touch afterwards. A record has a row's
  // weights, bias and state, padded to an even number of floats.
  struct Copies {
    std::vector<std::uint32_t> rows;
    AlignedVector<float> records;
  };

  // Number of floats of the row's record.
  [[nodiscard]] std::size_t record_size(std::uint32_t row) const {
    return (std::size_t{size(row)} + 3) / 2 * 2;
  }

  void keep(std::uint32_t row);
  void put_back(const Copies& copies);

  std::uint32_t no_feature_;
  std::vector<std::uint8_t> sizes_;   // rows
  std::vector<std::size_t> begins_;   // rows
  std::vector<std::uint32_t> order_;  // rows in the order of appending; empty after lay_out()
  AlignedVector<float> weights_;
  AlignedVector<std::uint32_t> features_;
  std::vector<End> ends_;
  std::vector<std::uint32_t> open_at_;  // by row: its place in open_, or kUnchanged
  Copies open_;                         // values at the last commit
  std::vector<Copies> closed_;          // values at earlier commits, oldest first; at most two
};

class WideShard final : public LeasedShard {
 public:
  // Configuration and map outlive the shard, which has no rows before load(). `label_counts` has
  // one entry per neuron; the shard can be trained only with them.
  WideShard(const ModelConfig& config, const ShardMap& map, const Kernels& kernels, ShardId shard,
            std::span<const std::uint32_t> label_counts = {});

  [[nodiscard]] ShardId id() const { return shard_; }

  [[nodiscard]] NeuronRange neurons() const { return neurons_; }

  Result<void> load(const ShardRows& rows) override;
  // A wide shard is handed over only between rounds, and so without rows.
  Result<void> load_touched(const ShardRows& rows) override;

  // Every row of a wide shard is stored.
  void load_initial(const ChunkLedger& /*ledger*/) override { rows_.lay_out(); }

  void finish_loading() override;
  bool step_back(std::uint32_t commits) override;

  [[nodiscard]] std::vector<ShardRows> touched_rows() const override {
    return std::vector<ShardRows>(1);
  }

  // Any thread may call this while another trains the shard; the size is then a recent one.
  [[nodiscard]] std::uint64_t memory_bytes() const override { return memory_bytes_; }

  [[nodiscard]] ShardDigest digest() const override { return rows_.digest(shard_); }

  // A neuron's features, ascending, and its weights, parallel to them.
  [[nodiscard]] std::span<const std::uint32_t> features(std::uint32_t neuron) const {
    return {rows_.features() + places_[neuron].begin, places_[neuron].size};
  }

  [[nodiscard]] const float* weights(std::uint32_t neuron) const {
    return rows_.weights() + places_[neuron].begin;
  }

  [[nodiscard]] float bias(std::uint32_t neuron) const { return rows_.bias(places_[neuron].row); }

  // Trains a neuron on an example and adds to `outcome`. `matches` are in the order of the
  // features.
  void train(std::uint32_t neuron, std::span<const WideMatch> matches, bool is_true, float rate,
             ShardOutcome& outcome);
  // Measures memory_bytes() after some batches.
  void measure_memory();

  // Ends a round: rounds touched rows to the values that the update expresses, and returns the
  // update in at least one part of ascending rows.
  std::vector<SparseUpdate> commit();

 private:
  void update(std::uint32_t neuron, float step, std::span<const WideMatch> matches);

  // A neuron's rows. All rows but the last are full.
  struct Place {
    std::size_t begin = 0;   // among the weights
    std::uint32_t row = 0;   // the neuron's first row
    std::uint32_t size = 0;  // weights that have a feature
  };

  const ModelConfig& config_;
  const ShardMap& map_;
  const Kernels& kernels_;
  const LossKernels& loss_;
  ShardId shard_;
  NeuronRange neurons_;
  WideRows rows_;
  std::vector<std::uint32_t> owners_;       // by stored row: its neuron
  std::vector<std::uint8_t> examples_few_;  // by neuron: its label's examples, at most 2
  std::vector<Place> places_;               // by neuron
  std::atomic<std::uint64_t> memory_bytes_{0};
};

}  // namespace gleaner
