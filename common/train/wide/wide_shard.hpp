// An output shard without a hidden layer: its neurons' wide rows, and the training step on some of
// them. A neuron's wide row is a sparse row of weights straight over features (the wide part of
// Cheng et al. 2016, arXiv 1606.07792), cut into stored rows of kWideWeights.
//
//   score(x) = bias + sum over the features that x and the row share of x_j * weight_j
//
// A step is neuron by neuron, and within a neuron example by example: plain SGD on the logistic
// loss, without any state. A neuron reads no other, so neurons may be divided among threads.
//
// A label's row begins as the sum of its examples. Training on one of them leaves it out: the
// example's own part of the score is subtracted, for the row would otherwise know it by heart. The
// state of a neuron's first stored row says how much the square of a feature counts in that part
// (storage/keep/initial_model.hpp). A label with a single example does not learn from that example.
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

// Where a neuron and an example meet: the weight's place in the neuron, and the feature's value.
struct WideMatch {
  std::uint32_t at = 0;
  float value = 0;
};

// The stored rows of a wide shard in memory: of each row as many weights as it uses, the rows one
// behind the other, and copies of a row where somebody will ask for what it was.
//
// A row is touched before it changes. That keeps, once a round, the row as the last commit left it.
// The copies of a round outlive its commit: they are the way back to the checkpoint before it, as
// far as in OutputRows.
//
// Rows are appended in any order, each once, then laid out. One thread at a time; const members:
// any thread.
class WideRows {
 public:
  // `no_feature` is what a row names where it has no more features.
  WideRows(std::uint32_t rows, std::uint32_t no_feature);

  // `values` is a row as stored: kWideWeights weights, then the bias; `features`: one a weight.
  void append(std::uint32_t row, std::span<const float> values,
              std::span<const std::uint32_t> features, float state);
  // Ends appending: rows that follow each other lie behind each other. Gives spare room back.
  void lay_out();

  [[nodiscard]] std::uint32_t rows() const { return static_cast<std::uint32_t>(sizes_.size()); }

  [[nodiscard]] bool is_loaded(std::uint32_t row) const { return sizes_[row] != kNotLoaded; }

  // Where the row begins among all weights.
  [[nodiscard]] std::size_t begin(std::uint32_t row) const { return begins_[row]; }

  // Its weights in memory; those behind them are 0.
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

  // A row as stored.
  void read(std::uint32_t row, std::span<float> values) const;

  // Rows touched since the last commit, ascending.
  [[nodiscard]] std::vector<std::uint32_t> touched() const;

  // As OutputRows::commit_row, end_commit and step_back.
  void commit_row(std::uint32_t row, SparseUpdate& update, const Kernels& kernels);
  void end_commit();
  [[nodiscard]] bool step_back(std::uint32_t commits);

  // The digest of the shard at its last commit, as a store has it. Requires that nothing is touched
  // since.
  [[nodiscard]] ShardDigest digest(ShardId shard) const;

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint8_t kNotLoaded = 0xff;
  // Instead of the place of a record. A place counts pairs of floats, so that 32 bits are enough.
  static constexpr std::uint32_t kUnchanged = ~0U;
  static_assert(std::uint64_t{kWideRowsMax} * (kWideWeights + 2) / 2 < kUnchanged);

  // The end of a row, behind its weights.
  struct End {
    float bias = 0;
    float state = 0;
  };

  // Rows as a commit left them, in the order in which they were first touched afterwards: weights,
  // bias and state of each, and a float for an even number.
  struct Copies {
    std::vector<std::uint32_t> rows;
    AlignedVector<float> records;
  };

  // Floats of a row's record.
  [[nodiscard]] std::size_t record_size(std::uint32_t row) const {
    return (std::size_t{size(row)} + 3) / 2 * 2;
  }

  void keep(std::uint32_t row);
  void put_back(const Copies& copies);

  std::uint32_t no_feature_;
  std::vector<std::uint8_t> sizes_;   // rows
  std::vector<std::size_t> begins_;   // rows
  std::vector<std::uint32_t> order_;  // rows as they were appended; empty once they are laid out
  AlignedVector<float> weights_;
  AlignedVector<std::uint32_t> features_;
  std::vector<End> ends_;
  std::vector<std::uint32_t> open_at_;  // rows: their place in open_, or kUnchanged
  Copies open_;                         // as of the last commit
  std::vector<Copies> closed_;          // as of the commits before, oldest first; two at most
};

class WideShard final : public LeasedShard {
 public:
  // Configuration and map outlive the shard, which has no rows before load(). `label_counts`: one a
  // neuron; without them the shard cannot be trained.
  WideShard(const ModelConfig& config, const ShardMap& map, const Kernels& kernels, ShardId shard,
            std::span<const std::uint32_t> label_counts = {});

  [[nodiscard]] ShardId id() const { return shard_; }

  [[nodiscard]] NeuronRange neurons() const { return neurons_; }

  Result<void> load(const ShardRows& rows) override;
  // A shard without a hidden layer is handed over between rounds alone, and so without rows.
  Result<void> load_touched(const ShardRows& rows) override;

  // Every row of a wide shard is stored.
  void load_initial(const ChunkLedger& /*ledger*/) override { rows_.lay_out(); }

  void finish_loading() override;
  bool step_back(std::uint32_t commits) override;

  [[nodiscard]] std::vector<ShardRows> touched_rows() const override {
    return std::vector<ShardRows>(1);
  }

  // Any thread may call this while another trains the shard. It then gets the size after a recent
  // batch.
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

  // Trains a neuron on an example, given where they meet in the order of the features, and adds to
  // `outcome`.
  void train(std::uint32_t neuron, std::span<const WideMatch> matches, bool is_true, float rate,
             ShardOutcome& outcome);
  // Some batches are done.
  void measure_memory();

  // Ends a round: rounds touched rows to what the update says, and returns the update in parts of
  // ascending rows, at least one.
  std::vector<SparseUpdate> commit();

 private:
  void update(std::uint32_t neuron, float step, std::span<const WideMatch> matches);

  // Where a neuron is. All of its rows but the last are full.
  struct Place {
    std::size_t begin = 0;   // among the weights
    std::uint32_t row = 0;   // its first
    std::uint32_t size = 0;  // weights that have a feature
  };

  const ModelConfig& config_;
  const ShardMap& map_;
  const Kernels& kernels_;
  const LossKernels& loss_;
  ShardId shard_;
  NeuronRange neurons_;
  WideRows rows_;
  std::vector<std::uint32_t> owners_;  // stored rows: their neurons
  std::vector<std::uint8_t> is_lone_;  // neurons: the label has one example
  std::vector<Place> places_;          // neurons
  std::atomic<std::uint64_t> memory_bytes_{0};
};

}  // namespace gleaner
