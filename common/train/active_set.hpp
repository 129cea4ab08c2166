// Chooses which neurons of the shards that are held each example of a batch trains.
//
// An example's active set in a shard: its true labels; then, with Sampling::kLsh, the rows of the
// query's buckets, table by table from a random one on, until the shard's part of the cap is
// reached; then the shard's part of uniform random negatives. kRandom takes uniform negatives only,
// kAll every neuron. A shard's set is the same whichever other shards are held; they share the
// walk, since a bucket holds the rows of all of them.
//
// One chooser a thread; reused from batch to batch, so that a steady state allocates nothing.
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

// A shard that is held.
struct HeldShard {
  ShardId id{};
  NeuronRange neurons;
  bool is_trained = false;  // by the present step
};

// The shards that are held, ascending, and the tables over them in this order, which number their
// rows.
struct HeldRows {
  std::span<const HeldShard> shards;
  const HashTables& tables;
};

// Examples of a batch from `begin` up to `end`.
struct ExampleRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// The active sets of consecutive examples of a batch, in all shards that are asked.
class alignas(kCacheLine) ActiveSets {
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

  // The neurons of all examples, one after the other.
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

// How many neurons each example of a batch chose in each of the shards held, by their places.
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

  // Chooses for some examples of the batch. `counts` is cleared for all of them.
  void choose(const QueryBatch& batch, const Positives& positives, const HeldRows& held,
              ExampleRange examples, ActiveSets& sets, ShardCounts& counts);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static_assert(kWordBits == HashTables::kSection, "a word's rows are of one shard");

  // Adds the row unless the example has it; returns whether it did.
  bool add(std::uint32_t row);
  // Makes room for `rows` rows more.
  void reserve(std::size_t rows);

  void add_positives(const Positives& positives, std::uint32_t example, const HeldRows& held);
  // Sets quotas_ to each shard's part of the cap; returns their sum.
  std::uint64_t set_quotas(std::uint64_t turn, const HeldRows& held);
  // Adds the rows met first in the example's buckets, until every shard's quota is used up.
  template <typename Word>
  void add_met(const QueryBatch& batch, std::uint32_t example, const PackedTables<Word>& tables,
               const HeldRows& held, std::uint64_t quotas);
  // Adds those rows that the example does not have and whose shard has some quota left; returns
  // how many.
  template <typename Word>
  std::uint32_t add_within_quotas(std::span<const Word> rows, const HeldRows& held);
  void add_random(BatchIndex batch, std::uint32_t example, std::uint64_t turn,
                  const HeldRows& held);
  void add_distinct_random(BatchIndex batch, std::uint32_t example, const HeldRows& held);
  void add_all(const HeldRows& held);
  void end_example(std::uint32_t* counts, const HeldRows& held);

  const ModelConfig& config_;
  // By row, whether the example being built has it; zero between examples.
  std::vector<std::uint64_t> chosen_bits_;
  std::vector<std::uint32_t> quotas_;  // by shard: negatives that the example may still take
  ActiveSets* sets_ = nullptr;         // what is being built
};

// Turns active sets round: from each example's neurons to each neuron's examples, so that a
// neuron's row is loaded once. One caller at a time; loops run on the pool. Reused, so that a
// steady state allocates nothing.

// Rows of a part at most: a second cache level holds counters of them.
inline constexpr std::uint32_t kPartRows = 1U << 15;

// Some rows of a shard, which are trained by one thread: whole sections (hash_table.hpp).
struct RowPart {
  std::size_t shard = 0;          // its place among those held
  std::uint32_t shard_begin = 0;  // the number of its first row
  std::uint32_t begin = 0;        // numbers of the rows
  std::uint32_t end = 0;
};

// Appends the parts of a shard, of about equal size: as many as are wanted, if its rows suffice,
// and as many as keep each within kPartRows.
void cut_into_parts(std::size_t shard, std::uint32_t shard_begin, std::uint32_t rows,
                    std::size_t wanted, std::vector<RowPart>& parts);

class PairLists {
 public:
  // The lists of all rows. `sets` are those of a whole batch, in the order of their examples;
  // `parts` ascend, and hold every row that an example chose.
  void build(std::span<const ActiveSets> sets, std::span<const RowPart> parts, ThreadPool& pool);

  // Rows of a part that some example chose, ascending, as the shard numbers them.
  [[nodiscard]] std::span<const std::uint32_t> rows(std::size_t part) const {
    return {rows_.data() + places_[part].row, places_[part].rows};
  }

  // Where in pairs() the pairs of each of rows() end; they begin where those of the one before end.
  [[nodiscard]] std::span<const std::uint32_t> pair_ends(std::size_t part) const {
    return {pair_ends_.data() + places_[part].row, places_[part].rows};
  }

  // The examples of each of rows(), ascending, true ones marked; sixteen more are readable.
  [[nodiscard]] const ActivePair* pairs(std::size_t part) const {
    return pairs_.data() + places_[part].pair;
  }

  // Pairs of all rows of a part.
  [[nodiscard]] std::uint64_t active(std::size_t part) const {
    return places_[part + 1].pair - places_[part].pair;
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  // Where a part's rows and pairs begin, and how many of its rows some example chose.
  struct Place {
    std::size_t row = 0;
    std::size_t rows = 0;
    std::size_t pair = 0;
  };

  // Small, since another thread than the one that writes it reads it.
  struct Choice {
    std::uint16_t row = 0;  // counted from its part's first
    ActivePair pair = 0;
  };

  // The choices of the examples of a set, part by part, each in the order of the examples.
  struct ByPart {
    std::vector<Choice> choices;
    std::vector<std::size_t> ends;  // of each part's choices; they begin where the last one's end

    [[nodiscard]] std::span<const Choice> of(std::size_t part) const {
      const std::size_t begin = part == 0 ? 0 : ends[part - 1];
      return {choices.data() + begin, ends[part] - begin};
    }
  };

  // The two passes of a radix sort. By part first: the second pass then counts within a part's
  // rows, which a cache holds, where a layer's do not fit.
  void sort_by_part(const ActiveSets& set, std::span<const RowPart> parts, ByPart& sorted) const;
  void sort_part(std::span<const RowPart> parts, std::size_t part,
                 std::vector<std::uint32_t>& counts);

  std::vector<std::uint32_t> part_by_section_;
  std::vector<ByPart> by_part_;                     // by set
  std::vector<std::vector<std::uint32_t>> counts_;  // by worker: pairs of each row of a part
  std::vector<Place> places_;                       // of the parts, and the end
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint32_t> pair_ends_;
  std::vector<ActivePair> pairs_;
};

}  // namespace gleaner
