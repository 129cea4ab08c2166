// Chooses which of a shard's neurons each example of a batch trains.
//
// An example's active set: its true labels in the shard; then, with Sampling::kLsh, the rows of the
// query's buckets, table by table from a random one on, each bucket from a random place on, until
// the shard's part of the cap is reached; then the shard's part of uniform random negatives.
// kRandom takes uniform negatives only, kAll every neuron.
//
// One chooser a thread; reused from batch to batch and from shard to shard, so that a steady state
// allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/output/hash_table.hpp"
#include "volunteer/train/output/query_batch.hpp"

namespace gleaner {

// Examples of a batch from `begin` up to `end`.
struct ExampleRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// The active sets of consecutive examples of a batch in one shard.
class ActiveSets {
 public:
  [[nodiscard]] ExampleRange examples() const { return examples_; }

  // Rows that the example trains: first its true ones, then negatives in the order of their choice.
  [[nodiscard]] std::span<const std::uint32_t> chosen(std::uint32_t example) const {
    const std::size_t index = example - examples_.begin;
    return {rows_.data() + offsets_[index], offsets_[index + 1] - offsets_[index]};
  }

  // How many of chosen(example) are true labels.
  [[nodiscard]] std::uint32_t true_count(std::uint32_t example) const {
    return true_counts_[example - examples_.begin];
  }

  // Of all examples, one after the other.
  [[nodiscard]] std::span<const std::uint32_t> all_chosen() const { return {rows_.data(), count_}; }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  friend class ActiveSetChooser;

  ExampleRange examples_;
  std::vector<std::uint32_t> rows_;  // the first count_ are in use
  std::size_t count_ = 0;
  std::vector<std::size_t> offsets_;
  std::vector<std::uint32_t> true_counts_;
};

class ActiveSetChooser {
 public:
  explicit ActiveSetChooser(const ModelConfig& config);

  // Chooses for some examples of the batch. `neurons` is the shard's range, `tables` its tables.
  void choose(const QueryBatch& batch, const Positives& positives, ShardId shard,
              NeuronRange neurons, const HashTables& tables, ExampleRange examples,
              ActiveSets& sets);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kWordBits = 64;

  // Adds those of the rows that the example does not have, until `limit` have been added; returns
  // how many were.
  template <typename Row>
  std::uint32_t add(std::span<const Row> rows, std::uint32_t limit);

  bool add(std::uint32_t row) { return add(std::span<const std::uint32_t>(&row, 1), 1) != 0; }

  void add_positives(const Positives& positives, std::uint32_t example, NeuronRange neurons);
  // Adds the rows met first in the example's buckets, at most `cap`.
  template <typename Word>
  void add_met(const QueryBatch& batch, std::uint32_t example, const PackedTables<Word>& tables,
               std::uint32_t cap);
  // Adds what `count` draws among `rows` bring.
  void add_random(BatchIndex batch, std::uint32_t example, ShardId shard, std::uint32_t rows,
                  std::uint32_t count);
  void add_distinct_random(BatchIndex batch, std::uint32_t example, ShardId shard,
                           std::uint32_t rows, std::uint32_t count);
  void end_example();

  const ModelConfig& config_;
  // By row, whether the example being built has it; zero between examples. A shard's fit the first
  // cache level, and many more rows are looked at than chosen.
  std::vector<std::uint64_t> chosen_bits_;
  ActiveSets* sets_ = nullptr;  // what is being built
};

}  // namespace gleaner
