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
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
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

  // Rows that some example chose, ascending.
  [[nodiscard]] std::span<const std::uint32_t> rows() const { return {rows_.data(), row_count_}; }

  // Where the pairs of each of rows() end; they begin where those of the one before end.
  [[nodiscard]] std::span<const std::size_t> pair_ends() const {
    return {pair_ends_.data(), row_count_};
  }

  // The examples of each of rows(), ascending, true ones marked; sixteen more are readable.
  [[nodiscard]] const ActivePair* pairs() const { return pairs_.data(); }

  // Pairs of all rows.
  [[nodiscard]] std::uint64_t active() const { return chosen_count_; }

  // Rows the example trains: first its true ones, then negatives in the order of their choice.
  [[nodiscard]] std::span<const std::uint32_t> chosen(std::uint32_t example) const {
    return {chosen_.data() + example_offsets_[example],
            example_offsets_[example + 1] - example_offsets_[example]};
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kWordBits = 64;

  // Adds those of the rows that the example does not have, until `limit` have been added; returns
  // how many were.
  template <typename Row>
  std::uint32_t choose(std::span<const Row> rows, std::uint32_t limit);

  bool choose(std::uint32_t row) { return choose(std::span<const std::uint32_t>(&row, 1), 1) != 0; }

  void choose_positives(const Positives& positives, std::uint32_t example, NeuronRange neurons);
  // Chooses the rows met first in the example's buckets.
  template <typename Word>
  void choose_met(const QueryBatch& batch, std::uint32_t example, const PackedTables<Word>& tables);
  void choose_random(BatchIndex batch, std::uint32_t example, ShardId shard, std::uint32_t rows);
  void choose_distinct_random(BatchIndex batch, std::uint32_t example, ShardId shard,
                              std::uint32_t rows);
  void end_example();
  void invert(std::uint32_t examples, std::uint32_t rows);

  const ModelConfig& config_;
  std::uint32_t cap_share_;     // negatives an example in one shard, from tables or by kRandom
  std::uint32_t random_share_;  // further uniform draws
  // By row, whether the example being built has it; zero between examples. A shard's fit the first
  // cache level, and many more rows are looked at than chosen.
  std::vector<std::uint64_t> chosen_bits_;
  std::vector<std::uint32_t> places_;  // by row: of its next pair
  std::vector<std::uint32_t> chosen_;  // the first chosen_count_ are in use
  std::size_t chosen_count_ = 0;
  std::vector<std::size_t> example_offsets_;
  std::vector<std::uint32_t> true_counts_;  // of an example: a prefix of its chosen rows
  std::vector<std::uint32_t> rows_;         // the first row_count_ are in use
  std::vector<std::size_t> pair_ends_;
  std::size_t row_count_ = 0;
  std::vector<ActivePair> pairs_;
};

}  // namespace gleaner
