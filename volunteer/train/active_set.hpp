// Chooses which of a shard's neurons each example of a batch trains, and turns the choice round:
// from each example's neurons to each neuron's examples, so that a neuron's row is loaded once.
//
// An example's active set: its true labels in the shard; then, with Sampling::kLsh, the rows of the
// query's buckets, table by table from a random one on, each bucket from a random place on, until
// the shard's share of the cap is reached; then the shard's share of uniform random negatives.
// kRandom takes uniform negatives only, kAll every neuron.
//
// One thread each; reused from batch to batch and from shard to shard, so that a steady state
// allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "common/kernels/kernels.hpp"
#include "common/model_config.hpp"
#include "common/shard_map.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/hash_table.hpp"
#include "volunteer/train/query_batch.hpp"

namespace gleaner {

class ActiveSets {
 public:
  explicit ActiveSets(const ModelConfig& config);

  // Chooses for every example of the batch. `neurons` is the shard's range, `tables` its tables.
  void build(const QueryBatch& batch, const Positives& positives, ShardId shard,
             NeuronRange neurons, const HashTables& tables);

  // The row's examples, ascending, true ones marked; sixteen more elements are readable.
  [[nodiscard]] std::span<const ActivePair> pairs(std::uint32_t row) const {
    return {pairs_.data() + row_offsets_[row], row_offsets_[row + 1] - row_offsets_[row]};
  }

  // Pairs of all rows.
  [[nodiscard]] std::uint64_t active() const { return chosen_.size(); }

  // Rows the example trains: first its true ones, then negatives in the order of their choice.
  [[nodiscard]] std::span<const std::uint32_t> chosen(std::uint32_t example) const {
    return {chosen_.data() + example_offsets_[example],
            example_offsets_[example + 1] - example_offsets_[example]};
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  void begin_example();
  // Adds the row unless the example has it; returns whether it did.
  bool choose(std::uint32_t row);
  void choose_positives(const Positives& positives, std::uint32_t example, NeuronRange neurons);
  void choose_from_tables(const QueryBatch& batch, std::uint32_t example, const HashTables& tables);
  void choose_random(BatchIndex batch, std::uint32_t example, ShardId shard, std::uint32_t rows);
  void choose_distinct_random(BatchIndex batch, std::uint32_t example, ShardId shard,
                              std::uint32_t rows);
  void invert(std::uint32_t examples, std::uint32_t rows);

  const ModelConfig& config_;
  std::uint32_t cap_share_;     // negatives an example in one shard, from tables or by kRandom
  std::uint32_t random_share_;  // further uniform draws
  std::vector<std::uint32_t> marks_;  // row -> generation of the example that chose it last
  std::uint32_t generation_ = 0;
  std::vector<std::uint32_t> chosen_;
  std::vector<std::size_t> example_offsets_;
  std::vector<std::uint32_t> true_counts_;  // of an example: a prefix of its chosen rows
  std::vector<std::size_t> row_offsets_;
  std::vector<ActivePair> pairs_;
};

}  // namespace gleaner
