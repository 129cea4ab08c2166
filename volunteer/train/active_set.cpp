#include "volunteer/train/active_set.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/check.hpp"
#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/permutation.hpp"

namespace gleaner {
namespace {

static_assert(kBatchExamplesMax <= kPairExampleMask, "an example's position fits a pair");

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
  chosen_bits_.resize(std::max(chosen_bits_.size(), rows / kWordBits + std::size_t{1}));
  chosen_count_ = 0;
  example_offsets_.assign(1, 0);
  true_counts_.clear();
  tables.visit([](const auto& packed) { packed.fetch_bounds(); });
  for (std::uint32_t example = 0; example < batch.examples(); ++example) {
    choose_positives(positives, example, neurons);
    switch (config_.sampling) {
      case Sampling::kLsh:
        tables.visit([&](const auto& packed) { choose_met(batch, example, packed); });
        choose_random(batch.batch(), example, shard, rows);
        break;
      case Sampling::kRandom:
        choose_distinct_random(batch.batch(), example, shard, rows);
        break;
      case Sampling::kAll:
        for (std::uint32_t row = 0; row < rows; ++row) choose(row);
        break;
    }
    end_example();
  }
  invert(batch.examples(), rows);
}

void ActiveSets::end_example() {
  example_offsets_.push_back(chosen_count_);
  const auto example = static_cast<std::uint32_t>(example_offsets_.size() - 2);
  for (const std::uint32_t row : chosen(example)) chosen_bits_[row / kWordBits] = 0;
}

template <typename Row>
std::uint32_t ActiveSets::choose(std::span<const Row> rows, std::uint32_t limit) {
  if (chosen_.size() < chosen_count_ + rows.size()) {
    chosen_.resize(std::max(2 * chosen_.size(), chosen_count_ + rows.size()));
  }
  std::uint32_t added = 0;
  while (added < limit && !rows.empty()) {
    // At most one is added each step, so that many steps need not look at the limit. Whether a row
    // is new cannot be predicted; hence no branch, but a count that may not grow.
    const std::size_t steps = std::min<std::size_t>(rows.size(), limit - added);
    std::uint32_t* next = chosen_.data() + chosen_count_;
    for (const Row row : rows.first(steps)) {
      std::uint64_t& word = chosen_bits_[row / kWordBits];
      const std::uint64_t bit = std::uint64_t{1} << (row % kWordBits);
      *next = row;
      next += (word & bit) == 0 ? 1 : 0;
      word |= bit;
    }
    const auto grown = static_cast<std::size_t>(next - chosen_.data());
    added += static_cast<std::uint32_t>(grown - chosen_count_);
    chosen_count_ = grown;
    rows = rows.subspan(steps);
  }
  return added;
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

template <typename Word>
void ActiveSets::choose_met(const QueryBatch& batch, std::uint32_t example,
                            const PackedTables<Word>& tables) {
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
  std::uint32_t left = cap_share_;
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
    left -= choose(bucket.subspan(first), left);
    left -= choose(bucket.first(first), left);
    if (left == 0) return;
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
  // A counting sort by row: a row's count becomes the place of its next pair.
  places_.assign(rows, 0);
  for (const std::uint32_t row : std::span(chosen_).first(chosen_count_)) ++places_[row];
  // Whether a row is in use cannot be predicted; hence no branch, but a count that may not grow.
  if (rows_.size() <= rows) {
    rows_.resize(rows + std::size_t{1});
    pair_ends_.resize(rows_.size());
  }
  row_count_ = 0;
  std::uint32_t end = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint32_t count = std::exchange(places_[row], end);
    end += count;
    rows_[row_count_] = row;
    pair_ends_[row_count_] = end;
    row_count_ += count != 0 ? 1 : 0;
  }
  if (pairs_.size() < end + std::size_t{kLanes}) pairs_.resize(end + std::size_t{kLanes});
  for (std::uint32_t example = 0; example < examples; ++example) {
    const std::span<const std::uint32_t> of_example = chosen(example);
    const std::size_t trues = true_counts_[example];
    for (std::size_t i = 0; i < of_example.size(); ++i) {
      const std::uint32_t mark = i < trues ? kTruePair : 0;
      pairs_[places_[of_example[i]]++] = static_cast<ActivePair>(example | mark);
    }
  }
}

std::uint64_t ActiveSets::memory_bytes() const {
  return chosen_bits_.capacity() * sizeof(std::uint64_t) +
         (places_.capacity() + chosen_.capacity() + rows_.capacity()) * sizeof(std::uint32_t) +
         pair_ends_.capacity() * sizeof(std::size_t) + pairs_.capacity() * sizeof(ActivePair);
}

}  // namespace gleaner
