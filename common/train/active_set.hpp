// Chooses which neurons of the held shards each example of a batch trains.  An example's active set
// in a shard has up to three parts. First, the example's true labels. Then, with Sampling::kLsh,
// the rows in the buckets of the example's hash codes, table by table from a random table on, until
// the shard's part of the cap is reached. Last, the shard's part of uniform random negatives.
// kRandom takes uniform negatives only, kAll takes every neuron. All held shards share one walk
// through the tables, since a bucket holds rows of all shards; yet the active set in a shard does
// not depend on which other shards are held.  One chooser per thread. Memory is reused from batch
// to batch, so a steady state allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "common/limits.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/thread_pool.hpp"
#include "common/train/hash_table.hpp"
#include "common/train/kernels.hpp"
#include "common/train/sim_hash.hpp"
#include "common/work/units.hpp"

namespace gleaner {

struct HeldShard {
  ShardId id{};
  NeuronRange neurons;
  bool is_trained = false;  // by the present step
};

// The held shards, ascending, and the hash tables over them in the same order. The tables number
// the rows of all shards.
struct HeldRows {
  std::span<const HeldShard> shards;
  const HashTables& tables;
};

// Examples `begin` to `end` - 1 of a batch.
struct ExampleRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// The active sets of consecutive examples of a batch, in all shards that the step trains.
class alignas(kCacheLine) ActiveSets {
 public:
  [[nodiscard]] ExampleRange examples() const { return examples_; }

  // Rows that the example trains: first its true labels, then negatives in the order of their
  // choice.
  [[nodiscard]] std::span<const std::uint32_t> chosen(std::uint32_t example) const {
    const std::size_t index = example - examples_.begin;
    return {rows_.data() + offsets_[index], offsets_[index + 1] - offsets_[index]};
  }

  // How many of chosen(example) are true labels.
  [[nodiscard]] std::uint32_t true_count(std::uint32_t example) const {
    return true_counts_[example - examples_.begin];
  }

  // The rows of all examples, one example after the other.
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

// The number of neurons that each example of a batch chose in each held shard (by its index).
class ShardCounts {
 public:
  void clear(std::uint32_t examples, std::size_t shards) {
    shards_ = shards;
    counts_.assign(examples * shards, 0);
  }

  std::uint32_t* of(std::uint32_t example) { return counts_.data() + example * shards_; }

  [[nodiscard]] std::uint32_t at(std::uint32_t example, std::size_t shard) const {
    return counts_[example * shards_ + shard];
  }

 private:
  std::size_t shards_ = 0;
  std::vector<std::uint32_t> counts_;  // examples x shards
};

class ActiveSetChooser {
 public:
  explicit ActiveSetChooser(const ModelConfig& config);

  // Chooses for the examples of a range. `counts` must have been cleared for the whole batch.
  void choose(const QueryBatch& batch, const Positives& positives, const HeldRows& held,
              ExampleRange examples, ActiveSets& sets, ShardCounts& counts);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static_assert(kWordBits == HashTables::kSection, "a word's rows are of one shard");

  // Adds the row unless the example has it already. Returns whether it was added.
  bool add(std::uint32_t row);
  // Makes room for `rows` more rows.
  void reserve(std::size_t rows);

  void add_positives(const Positives& positives, std::uint32_t example, const HeldRows& held);
  // Sets quotas_ to each shard's part of the cap. Returns the sum of the quotas.
  std::uint64_t set_quotas(std::uint64_t turn, const HeldRows& held);
  // Adds rows of the example's buckets in the order of the walk, until every quota is used up.
  template <typename Word>
  void add_met(const QueryBatch& batch, std::uint32_t example, const PackedTables<Word>& tables,
               const HeldRows& held, std::uint64_t quotas);
  // Adds the rows that the example does not have yet and whose shard has quota left. Returns how
  // many rows were added.
  template <typename Word>
  std::uint32_t add_within_quotas(std::span<const Word> rows, const HeldRows& held);
  void add_random(BatchIndex batch, std::uint32_t example, std::uint64_t turn,
                  const HeldRows& held);
  void add_distinct_random(BatchIndex batch, std::uint32_t example, const HeldRows& held);
  void add_all(const HeldRows& held);
  void end_example(std::uint32_t* counts, const HeldRows& held);

  const ModelConfig& config_;
  // One bit per row: whether the example in progress has the row. Zero between examples.
  std::vector<std::uint64_t> chosen_bits_;
  std::vector<std::uint32_t> quotas_;  // by shard: negatives that the example may still take
  ActiveSets* sets_ = nullptr;         // the sets in progress
};

// Inverts active sets, from the neurons of each example to the examples of each neuron, so that a
// neuron's row is loaded once. One caller at a time; loops run on the pool. Memory is reused, so a
// steady state allocates nothing.

// Most rows of a part: counters of this number of rows fit the second cache level.
inline constexpr std::uint32_t kPartRows = 1U << 15;

// Rows of a shard that one thread trains. A part consists of whole sections (hash_table.hpp).
struct RowPart {
  std::size_t shard = 0;          // index of the shard among the held shards
  std::uint32_t shard_begin = 0;  // the number of its first row
  std::uint32_t begin = 0;        // numbers of the rows
  std::uint32_t end = 0;
};

// Cuts a shard into parts of about equal size and appends them. The number of parts is `wanted`, or
// less if the shard has too few rows, or more if a part would exceed kPartRows.
void cut_into_parts(std::size_t shard, std::uint32_t shard_begin, std::uint32_t rows,
                    std::size_t wanted, std::vector<RowPart>& parts);

class PairLists {
 public:
  // Builds the lists of all rows. `sets` cover a whole batch in the order of its examples. `parts`
  // ascend and contain every row that an example chose.
  void build(std::span<const ActiveSets> sets, std::span<const RowPart> parts, ThreadPool& pool);

  // Rows of a part that an example chose, ascending, by their numbers in the shard.
  [[nodiscard]] std::span<const std::uint32_t> rows(std::size_t part) const {
    return {rows_.data() + places_[part].row, places_[part].rows};
  }

  // For each of rows(), where its pairs end in pairs(). A row's pairs begin at the end before.
  [[nodiscard]] std::span<const std::uint32_t> pair_ends(std::size_t part) const {
    return {pair_ends_.data() + places_[part].row, places_[part].rows};
  }

  // The examples of each of rows(), ascending; true labels are marked. 16 more pairs are readable.
  [[nodiscard]] const ActivePair* pairs(std::size_t part) const {
    return pairs_.data() + places_[part].pair;
  }

  // Number of pairs of all rows of a part.
  [[nodiscard]] std::uint64_t active(std::size_t part) const {
    return places_[part + 1].pair - places_[part].pair;
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  // Where a part's rows and pairs begin, and how many of its rows an example chose.
  struct Place {
    std::size_t row = 0;
    std::size_t rows = 0;
    std::size_t pair = 0;
  };

  // Small, since one thread writes it and another thread reads it.
  struct Choice {
    std::uint16_t row = 0;  // counted from the part's first row
    ActivePair pair = 0;
  };

  // The choices of one set, part by part. Within a part they are in the order of the examples.
  struct ByPart {
    std::vector<Choice> choices;
    std::vector<std::size_t> ends;  // by part: where its choices end

    [[nodiscard]] std::span<const Choice> of(std::size_t part) const {
      const std::size_t begin = part == 0 ? 0 : ends[part - 1];
      return {choices.data() + begin, ends[part] - begin};
    }
  };

  // The two passes of a radix sort. The first pass sorts by part. The second pass then counts
  // within one part's rows: their counters fit a cache, unlike a whole layer's.
  void sort_by_part(const ActiveSets& set, std::span<const RowPart> parts, ByPart& sorted) const;
  void sort_part(std::span<const RowPart> parts, std::size_t part,
                 std::vector<std::uint32_t>& counts);

  std::vector<std::uint32_t> part_by_section_;
  std::vector<ByPart> by_part_;                     // by set
  std::vector<std::vector<std::uint32_t>> counts_;  // by thread: pairs of each row of a part
  std::vector<Place> places_;                       // of the parts; one more entry is the end
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> pair_ends_;
  std::vector<ActivePair> pairs_;
};

}  // namespace gleaner
