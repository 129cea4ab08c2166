#include "volunteer/train/active_set.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/permutation.hpp"

namespace gleaner {
namespace {

static_assert(kBatchExamplesMax <= kPairExampleMask, "an example's position fits a pair");

// The share of one shard, rounded up, so that no shard is left without negatives.
std::uint32_t share(std::uint32_t total, std::uint32_t shards) {
  return total / shards + (total % shards != 0 ? 1 : 0);
}

}  // namespace

ActiveSets::ActiveSets(const ModelConfig& config)
    : config_(config),
      cap_share_(share(config.active_cap, config.output_shards)),
      random_share_(share(config.random_negatives, config.output_shards)) {}

void ActiveSets::build(const QueryBatch& batch, const Positives& positives, ShardId shard,
                       NeuronRange neurons, const HashTables& tables) {
  const std::uint32_t rows = neurons.size();
  if (marks_.size() < rows) marks_.resize(rows, 0);
  chosen_.clear();
  example_offsets_.assign(1, 0);
  true_counts_.clear();
  row_offsets_.assign(rows + std::size_t{1}, 0);
  for (std::uint32_t example = 0; example < batch.examples(); ++example) {
    begin_example();
    choose_positives(positives, example, neurons);
    switch (config_.sampling) {
      case Sampling::kLsh:
        choose_from_tables(batch, example, tables);
        choose_random(batch.batch(), example, shard, rows);
        break;
      case Sampling::kRandom:
        choose_distinct_random(batch.batch(), example, shard, rows);
        break;
      case Sampling::kAll:
        for (std::uint32_t row = 0; row < rows; ++row) choose(row);
        break;
    }
    example_offsets_.push_back(chosen_.size());
  }
  invert(batch.examples(), rows);
}

void ActiveSets::begin_example() {
  if (++generation_ == 0) {
    std::fill(marks_.begin(), marks_.end(), 0u);
    generation_ = 1;
  }
}

inline bool ActiveSets::choose(std::uint32_t row) {
  if (marks_[row] == generation_) return false;
  marks_[row] = generation_;
  ++row_offsets_[row + 1];
  chosen_.push_back(row);
  return true;
}

void ActiveSets::choose_positives(const Positives& positives, std::uint32_t example,
                                  NeuronRange neurons) {
  const auto begin = positives.neurons.begin() + positives.offsets[example];
  const auto end = positives.neurons.begin() + positives.offsets[example + 1];
  std::uint32_t count = 0;
  for (auto it = std::lower_bound(begin, end, neurons.begin); it != end && *it < neurons.end;
       ++it) {
    if (choose(*it - neurons.begin)) ++count;
  }
  true_counts_.push_back(count);
}

void ActiveSets::choose_from_tables(const QueryBatch& batch, std::uint32_t example,
                                    const HashTables& tables) {
  const std::span<const std::uint32_t> hashes = batch.hashes(example);
  const std::span<const std::uint32_t> rotations = batch.rotations(example);
  std::uint32_t left = cap_share_;
  std::uint32_t table = batch.start_table(example);
  for (std::uint32_t step = 0; step < tables.tables(); ++step) {
    const std::span<const std::uint32_t> bucket = tables.bucket(table, hashes[table]);
    const std::size_t first = (std::uint64_t{rotations[table]} * bucket.size()) >> 32;
    for (const std::uint32_t row : bucket.subspan(first)) {
      if (choose(row) && --left == 0) return;
    }
    for (const std::uint32_t row : bucket.first(first)) {
      if (choose(row) && --left == 0) return;
    }
    if (++table == tables.tables()) table = 0;
  }
}

void ActiveSets::choose_random(BatchIndex batch, std::uint32_t example, ShardId shard,
                               std::uint32_t rows) {
  for (std::uint32_t draw = 0; draw < random_share_; ++draw) {
    const std::uint64_t stream = (std::uint64_t{raw(shard)} << 32) | draw;
    choose(static_cast<std::uint32_t>(below(
        counter_random(config_.seed, Purpose::kRandomNegative, batch, example, stream), rows)));
  }
}

void ActiveSets::choose_distinct_random(BatchIndex batch, std::uint32_t example, ShardId shard,
                                        std::uint32_t rows) {
  // A random order of the rows gives distinct ones without ever drawing in vain.
  const Permutation order(
      rows, counter_random(config_.seed, Purpose::kRandomNegative, batch, example, raw(shard)));
  std::uint32_t left = cap_share_;
  for (std::uint32_t i = 0; i < rows && left > 0; ++i) {
    if (choose(static_cast<std::uint32_t>(order.forward(i)))) --left;
  }
}

void ActiveSets::invert(std::uint32_t examples, std::uint32_t rows) {
  // A counting sort by row. row_offsets_[row + 1] holds the row's count; after placing, each offset
  // has moved from its row's beginning to its end.
  for (std::uint32_t row = 0; row < rows; ++row) row_offsets_[row + 1] += row_offsets_[row];
  pairs_.resize(std::max(pairs_.size(), chosen_.size() + kLanes));
  for (std::uint32_t example = 0; example < examples; ++example) {
    const std::span<const std::uint32_t> rows_chosen = chosen(example);
    for (std::size_t i = 0; i < rows_chosen.size(); ++i) {
      const std::uint32_t truth = i < true_counts_[example] ? kTruePair : 0;
      pairs_[row_offsets_[rows_chosen[i]]++] = static_cast<ActivePair>(example | truth);
    }
  }
  for (std::uint32_t row = rows; row > 0; --row) row_offsets_[row] = row_offsets_[row - 1];
  row_offsets_[0] = 0;
}

std::uint64_t ActiveSets::memory_bytes() const {
  return (marks_.capacity() + chosen_.capacity()) * sizeof(std::uint32_t) +
         row_offsets_.capacity() * sizeof(std::size_t) + pairs_.capacity() * sizeof(ActivePair);
}

}  // namespace gleaner
