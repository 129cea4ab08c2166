#include "volunteer/train/output/active_set.hpp"

#include <algorithm>
#include <array>

#include "common/counter_random.hpp"
#include "common/permutation.hpp"

namespace gleaner {
namespace {

// A bucket in an example's walk through the tables, and where to begin in it.
template <typename Word>
struct Visit {
  std::span<const Word> bucket;
  std::size_t first = 0;
};

// Buckets are fetched before their turn until so many rows are on their way, a bucket at least:
// the next one where they are large, as a walk may end early, and many where they are small.
constexpr std::size_t kRowsAhead = 64;
constexpr std::uint32_t kVisitsAhead = 16;  // at most
constexpr std::size_t kLineBytes = 64;      // of the caches

// What a shard chooses of an example's negatives. What does not divide evenly goes round: an
// example's shards take one more each from a shard on that depends on batch and position.
std::uint32_t part_of_shard(std::uint32_t total, std::uint32_t shards, std::uint64_t turn) {
  return total / shards + (turn % shards < total % shards ? 1 : 0);
}

}  // namespace

ActiveSetChooser::ActiveSetChooser(const ModelConfig& config) : config_(config) {}

void ActiveSetChooser::choose(const QueryBatch& batch, const Positives& positives, ShardId shard,
                              NeuronRange neurons, const HashTables& tables, ExampleRange examples,
                              ActiveSets& sets) {
  const std::uint32_t rows = neurons.size();
  chosen_bits_.resize(std::max(chosen_bits_.size(), rows / kWordBits + std::size_t{1}));
  sets_ = &sets;
  sets.examples_ = examples;
  sets.count_ = 0;
  sets.offsets_.assign(1, 0);
  sets.true_counts_.clear();
  tables.visit([](const auto& packed) { packed.fetch_bounds(); });
  for (std::uint32_t example = examples.begin; example < examples.end; ++example) {
    add_positives(positives, example, neurons);
    const std::uint64_t turn = batch.batch() + example + raw(shard);
    const std::uint32_t cap = part_of_shard(config_.active_cap, config_.output_shards, turn);
    switch (config_.sampling) {
      case Sampling::kLsh:
        tables.visit([&](const auto& packed) { add_met(batch, example, packed, cap); });
        add_random(batch.batch(), example, shard, rows,
                   part_of_shard(config_.random_negatives, config_.output_shards, turn));
        break;
      case Sampling::kRandom:
        add_distinct_random(batch.batch(), example, shard, rows, cap);
        break;
      case Sampling::kAll:
        for (std::uint32_t row = 0; row < rows; ++row) add(row);
        break;
    }
    end_example();
  }
}

void ActiveSetChooser::end_example() {
  const std::size_t begin = sets_->offsets_.back();
  sets_->offsets_.push_back(sets_->count_);
  for (const std::uint32_t row : sets_->all_chosen().subspan(begin)) {
    chosen_bits_[row / kWordBits] = 0;
  }
}

template <typename Row>
std::uint32_t ActiveSetChooser::add(std::span<const Row> rows, std::uint32_t limit) {
  std::vector<std::uint32_t>& chosen = sets_->rows_;
  std::size_t& count = sets_->count_;
  if (chosen.size() < count + rows.size()) {
    chosen.resize(std::max(2 * chosen.size(), count + rows.size()));
  }
  std::uint32_t added = 0;
  while (added < limit && !rows.empty()) {
    // At most one is added each step, so that many steps need not look at the limit. Whether a row
    // is new cannot be predicted; hence no branch, but a count that may not grow.
    const std::size_t steps = std::min<std::size_t>(rows.size(), limit - added);
    std::uint32_t* next = chosen.data() + count;
    for (const Row row : rows.first(steps)) {
      std::uint64_t& word = chosen_bits_[row / kWordBits];
      const std::uint64_t bit = std::uint64_t{1} << (row % kWordBits);
      *next = row;
      next += (word & bit) == 0 ? 1 : 0;
      word |= bit;
    }
    const auto grown = static_cast<std::size_t>(next - chosen.data());
    added += static_cast<std::uint32_t>(grown - count);
    count = grown;
    rows = rows.subspan(steps);
  }
  return added;
}

void ActiveSetChooser::add_positives(const Positives& positives, std::uint32_t example,
                                     NeuronRange neurons) {
  const auto begin = positives.neurons.begin() + positives.offsets[example];
  const auto end = positives.neurons.begin() + positives.offsets[example + 1];
  std::uint32_t count = 0;
  for (auto it = std::lower_bound(begin, end, neurons.begin); it != end && *it < neurons.end;
       ++it) {
    if (add(*it - neurons.begin)) ++count;
  }
  sets_->true_counts_.push_back(count);
}

template <typename Word>
void ActiveSetChooser::add_met(const QueryBatch& batch, std::uint32_t example,
                               const PackedTables<Word>& tables, std::uint32_t cap) {
  const std::span<const std::uint32_t> hashes = batch.hashes(example);
  const std::span<const std::uint32_t> rotations = batch.rotations(example);
  const std::uint32_t start = batch.start_table(example);
  // Buckets lie scattered in memory.
  std::array<Visit<Word>, kVisitsAhead> ahead;
  const auto visit = [&](std::uint32_t step) {
    const std::uint32_t table =
        start + step < tables.tables() ? start + step : start + step - tables.tables();
    const std::span<const Word> bucket = tables.bucket(table, hashes[table]);
    const std::size_t first = (std::uint64_t{rotations[table]} * bucket.size()) >> 32;
    for (std::size_t i = 0; i < bucket.size(); i += kLineBytes / sizeof(Word)) {
      __builtin_prefetch(bucket.data() + i);
    }
    return Visit<Word>{bucket, first};
  };
  std::uint32_t left = cap;
  std::uint32_t next = 0;
  std::size_t rows_ahead = 0;
  const auto fetch = [&] {
    rows_ahead += (ahead[next % kVisitsAhead] = visit(next)).bucket.size();
    ++next;
  };
  for (std::uint32_t step = 0; step < tables.tables(); ++step) {
    if (next == step) fetch();
    const auto [bucket, first] = ahead[step % kVisitsAhead];
    rows_ahead -= bucket.size();
    while (next < tables.tables() && next - step < kVisitsAhead && rows_ahead < kRowsAhead) fetch();
    left -= add(bucket.subspan(first), left);
    left -= add(bucket.first(first), left);
    if (left == 0) return;
  }
}

void ActiveSetChooser::add_random(BatchIndex batch, std::uint32_t example, ShardId shard,
                                  std::uint32_t rows, std::uint32_t count) {
  for (std::uint32_t draw = 0; draw < count; ++draw) {
    const std::uint64_t stream = (std::uint64_t{raw(shard)} << 32) | draw;
    add(static_cast<std::uint32_t>(below(
        counter_random(config_.seed, Purpose::kRandomNegative, batch, example, stream), rows)));
  }
}

void ActiveSetChooser::add_distinct_random(BatchIndex batch, std::uint32_t example, ShardId shard,
                                           std::uint32_t rows, std::uint32_t count) {
  // A random order of the rows gives distinct ones without ever drawing in vain.
  const Permutation order(
      rows, counter_random(config_.seed, Purpose::kRandomNegative, batch, example, raw(shard)));
  std::uint32_t left = count;
  for (std::uint32_t i = 0; i < rows && left > 0; ++i) {
    if (add(static_cast<std::uint32_t>(order.forward(i)))) --left;
  }
}

std::uint64_t ActiveSetChooser::memory_bytes() const {
  return chosen_bits_.capacity() * sizeof(std::uint64_t);
}

std::uint64_t ActiveSets::memory_bytes() const {
  return (rows_.capacity() + true_counts_.capacity()) * sizeof(std::uint32_t) +
         offsets_.capacity() * sizeof(std::size_t);
}

}  // namespace gleaner
