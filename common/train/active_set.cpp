#include "common/train/active_set.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/counter_random.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

// Buckets are fetched before their turn, at least one bucket, until kRowsAhead rows are on their
// way: only the next bucket where buckets are large, since a walk may end early, and many where
// they are small.
constexpr std::size_t kRowsAhead = 64;
constexpr std::uint32_t kVisitsAhead = 16;  // at most
constexpr std::size_t kLineBytes = 64;      // of the caches

// A shard's part of an example's `total` negatives. The remainder goes to one shard each, beginning
// at a shard that depends on batch and position.
std::uint32_t part_of_shard(std::uint32_t total, std::uint32_t shards, std::uint64_t turn) {
  return total / shards + (turn % shards < total % shards ? 1 : 0);
}

}  // namespace

ActiveSetChooser::ActiveSetChooser(const ModelConfig& config) : config_(config) {}

void ActiveSetChooser::choose(const QueryBatch& batch, const Positives& positives,
                              const HeldRows& held, ExampleRange examples, ActiveSets& sets,
                              ShardCounts& counts) {
  chosen_bits_.resize(std::max<std::size_t>(chosen_bits_.size(), held.tables.end() / kWordBits));
  sets_ = &sets;
  sets.examples_ = examples;
  sets.count_ = 0;
  sets.offsets_.assign(1, 0);
  sets.true_counts_.clear();
  held.tables.visit([](const auto& packed) { packed.fetch_bounds(); });
  for (std::uint32_t example = examples.begin; example < examples.end; ++example) {
    add_positives(positives, example, held);
    const std::uint64_t turn = batch.batch() + example;
    const std::uint64_t quotas = set_quotas(turn, held);
    switch (config_.sampling) {
      case Sampling::kLsh:
        held.tables.visit(
            [&](const auto& packed) { add_met(batch, example, packed, held, quotas); });
        add_random(batch.batch(), example, turn, held);
        break;
      case Sampling::kRandom:
        add_distinct_random(batch.batch(), example, held);
        break;
      case Sampling::kAll:
        add_all(held);
        break;
    }
    end_example(counts.of(example), held);
  }
}

void ActiveSetChooser::end_example(std::uint32_t* counts, const HeldRows& held) {
  const std::size_t begin = sets_->offsets_.back();
  sets_->offsets_.push_back(sets_->count_);
  for (const std::uint32_t row : sets_->all_chosen().subspan(begin)) {
    chosen_bits_[row / kWordBits] = 0;
    ++counts[held.tables.shard_of(row)];
  }
}

void ActiveSetChooser::reserve(std::size_t rows) {
  std::vector<std::uint32_t>& chosen = sets_->rows_;
  const std::size_t wanted = sets_->count_ + rows;
  if (chosen.size() < wanted) chosen.resize(std::max(2 * chosen.size(), wanted));
}

bool ActiveSetChooser::add(std::uint32_t row) {
  std::uint64_t& word = chosen_bits_[row / kWordBits];
  const std::uint64_t bit = std::uint64_t{1} << (row % kWordBits);
  if ((word & bit) != 0) return false;
  word |= bit;
  reserve(1);
  sets_->rows_[sets_->count_++] = row;
  return true;
}

void ActiveSetChooser::add_positives(const Positives& positives, std::uint32_t example,
                                     const HeldRows& held) {
  std::uint32_t count = 0;
  for (std::uint32_t i = positives.offsets[example]; i < positives.offsets[example + 1]; ++i) {
    const std::uint32_t neuron = positives.neurons[i];
    const auto shard = std::ranges::upper_bound(held.shards, neuron, {},
                                                [](const HeldShard& s) { return s.neurons.end; });
    if (shard == held.shards.end() || neuron < shard->neurons.begin || !shard->is_trained) continue;
    const auto place = static_cast<std::size_t>(shard - held.shards.begin());
    if (add(held.tables.begin(place) + neuron - shard->neurons.begin)) ++count;
  }
  sets_->true_counts_.push_back(count);
}

std::uint64_t ActiveSetChooser::set_quotas(std::uint64_t turn, const HeldRows& held) {
  quotas_.assign(held.shards.size(), 0);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < quotas_.size(); ++i) {
    const HeldShard& shard = held.shards[i];
    if (!shard.is_trained) continue;
    quotas_[i] = part_of_shard(config_.active_cap, config_.output_shards, turn + raw(shard.id));
    sum += quotas_[i];
  }
  return sum;
}

template <typename Word>
std::uint32_t ActiveSetChooser::add_within_quotas(std::span<const Word> rows,
                                                  const HeldRows& held) {
  reserve(rows.size());
  std::uint32_t* const first = sets_->rows_.data() + sets_->count_;
  std::uint32_t* next = first;
  // A branch on whether a row is new would be mispredicted; hence a count that may not grow.
  for (const Word row : rows) {
    std::uint64_t& word = chosen_bits_[row / kWordBits];
    std::uint32_t& quota = quotas_[held.tables.shard_of(row)];
    const std::uint64_t is_new = (~word >> (row % kWordBits)) & 1U;
    const std::uint64_t is_added = is_new & (quota != 0 ? 1U : 0U);
    *next = row;
    next += is_added;
    quota -= static_cast<std::uint32_t>(is_added);
    word |= is_added << (row % kWordBits);
  }
  const auto added = static_cast<std::uint32_t>(next - first);
  sets_->count_ += added;
  return added;
}

template <typename Word>
void ActiveSetChooser::add_met(const QueryBatch& batch, std::uint32_t example,
                               const PackedTables<Word>& tables, const HeldRows& held,
                               std::uint64_t quotas) {
  const std::span<const std::uint32_t> hashes = batch.hashes(example);
  const std::uint32_t start = batch.start_table(example);
  // Buckets lie scattered in memory.
  std::array<std::span<const Word>, kVisitsAhead> ahead;
  const auto visit = [&](std::uint32_t step) {
    const std::uint32_t table =
        start + step < tables.tables() ? start + step : start + step - tables.tables();
    const std::span<const Word> bucket = tables.bucket(table, hashes[table]);
    for (std::size_t i = 0; i < bucket.size(); i += kLineBytes / sizeof(Word)) {
      __builtin_prefetch(bucket.data() + i);
    }
    return bucket;
  };
  std::uint32_t next = 0;
  std::size_t rows_ahead = 0;
  const auto fetch = [&] {
    rows_ahead += (ahead[next % kVisitsAhead] = visit(next)).size();
    ++next;
  };
  for (std::uint32_t step = 0; step < tables.tables() && quotas > 0; ++step) {
    if (next == step) fetch();
    const std::span<const Word> bucket = ahead[step % kVisitsAhead];
    rows_ahead -= bucket.size();
    while (next < tables.tables() && next - step < kVisitsAhead && rows_ahead < kRowsAhead) fetch();
    quotas -= add_within_quotas(bucket, held);
  }
}

void ActiveSetChooser::add_random(BatchIndex batch, std::uint32_t example, std::uint64_t turn,
                                  const HeldRows& held) {
  for (std::size_t i = 0; i < held.shards.size(); ++i) {
    const HeldShard& shard = held.shards[i];
    if (!shard.is_trained) continue;
    const std::uint32_t draws =
        part_of_shard(config_.random_negatives, config_.output_shards, turn + raw(shard.id));
    for (std::uint32_t draw = 0; draw < draws; ++draw) {
      const std::uint64_t stream = (std::uint64_t{raw(shard.id)} << 32) | draw;
      const std::uint64_t random =
          counter_random(config_.seed, Purpose::kRandomNegative, batch, example, stream);
      add(held.tables.begin(i) + static_cast<std::uint32_t>(below(random, shard.neurons.size())));
    }
  }
}

void ActiveSetChooser::add_distinct_random(BatchIndex batch, std::uint32_t example,
                                           const HeldRows& held) {
  for (std::size_t i = 0; i < held.shards.size(); ++i) {
    const HeldShard& shard = held.shards[i];
    const std::uint32_t rows = shard.neurons.size();
    // A random order of the rows gives distinct rows without a rejected draw.
    const Permutation order(rows, counter_random(config_.seed, Purpose::kRandomNegative, batch,
                                                 example, raw(shard.id)));
    for (std::uint32_t k = 0; k < rows && quotas_[i] > 0; ++k) {
      if (add(held.tables.begin(i) + static_cast<std::uint32_t>(order.forward(k)))) --quotas_[i];
    }
  }
}

void ActiveSetChooser::add_all(const HeldRows& held) {
  for (std::size_t i = 0; i < held.shards.size(); ++i) {
    if (!held.shards[i].is_trained) continue;
    const std::uint32_t begin = held.tables.begin(i);
    const std::uint32_t rows = held.shards[i].neurons.size();
    for (std::uint32_t row = 0; row < rows; ++row) add(begin + row);
  }
}

std::uint64_t ActiveSetChooser::memory_bytes() const {
  return chosen_bits_.capacity() * sizeof(std::uint64_t) +
         quotas_.capacity() * sizeof(std::uint32_t);
}

std::uint64_t ActiveSets::memory_bytes() const {
  return (rows_.capacity() + true_counts_.capacity()) * sizeof(std::uint32_t) +
         offsets_.capacity() * sizeof(std::size_t);
}

static_assert(kBatchExamplesMax <= kPairExampleMask, "an example's position fits a pair");
static_assert(kPartRows <= 1U << 16, "a row's place in its part fits a choice");

void cut_into_parts(std::size_t shard, std::uint32_t shard_begin, std::uint32_t rows,
                    std::size_t wanted, std::vector<RowPart>& parts) {
  const std::uint64_t sections = (rows + HashTables::kSection - 1) / HashTables::kSection;
  const std::uint64_t count = std::min<std::uint64_t>(
      std::max<std::uint64_t>(wanted, (rows + kPartRows - 1) / kPartRows), sections);
  std::uint32_t begin = 0;
  for (std::uint64_t part = 1; part <= count; ++part) {
    const auto end = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(rows, sections * part / count * HashTables::kSection));
    parts.push_back({shard, shard_begin, shard_begin + begin, shard_begin + end});
    begin = end;
  }
}

void PairLists::build(std::span<const ActiveSets> sets, std::span<const RowPart> parts,
                      ThreadPool& pool) {
  const std::uint32_t row_end = parts.empty() ? 0 : parts.back().end;
  part_by_section_.resize((row_end + HashTables::kSection - 1) / HashTables::kSection);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    GLEANER_CHECK(parts[part].end - parts[part].begin <= kPartRows);
    std::fill(part_by_section_.begin() + parts[part].begin / HashTables::kSection,
              part_by_section_.begin() +
                  (parts[part].end + HashTables::kSection - 1) / HashTables::kSection,
              static_cast<std::uint32_t>(part));
  }
  by_part_.resize(sets.size());
  pool.parallel_for(sets.size(), [&](std::size_t set, unsigned /*worker*/) {
    sort_by_part(sets[set], parts, by_part_[set]);
  });
  places_.assign(parts.size() + 1, {});
  for (std::size_t part = 0; part < parts.size(); ++part) {
    // Room for one row more than the part has: see sort_part().
    places_[part].row = parts[part].begin + part;
    places_[part + 1].pair = places_[part].pair;
    for (const ByPart& set : by_part_) places_[part + 1].pair += set.of(part).size();
  }
  rows_.resize(std::max<std::size_t>(rows_.size(), row_end + parts.size()));
  pair_ends_.resize(rows_.size());
  pairs_.resize(std::max(pairs_.size(), places_.back().pair + kLanes));
  counts_.resize(pool.threads());
  pool.parallel_for(parts.size(), [&](std::size_t part, unsigned worker) {
    sort_part(parts, part, counts_[worker]);
  });
}

void PairLists::sort_by_part(const ActiveSets& set, std::span<const RowPart> parts,
                             ByPart& sorted) const {
  const auto part_of = [this](std::uint32_t row) {
    return part_by_section_[row / HashTables::kSection];
  };
  std::vector<std::size_t>& next = sorted.ends;
  next.assign(parts.size() + 1, 0);
  for (const std::uint32_t row : set.all_chosen()) ++next[part_of(row) + std::size_t{1}];
  for (std::size_t part = 0; part < parts.size(); ++part) next[part + 1] += next[part];
  sorted.choices.resize(std::max(sorted.choices.size(), set.all_chosen().size()));
  // Placing moves each part's beginning to its end.
  for (std::uint32_t example = set.examples().begin; example < set.examples().end; ++example) {
    const std::span<const std::uint32_t> chosen = set.chosen(example);
    const std::size_t trues = set.true_count(example);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::uint32_t part = part_of(chosen[i]);
      const std::uint32_t mark = i < trues ? kTruePair : 0;
      sorted.choices[next[part]++] = {static_cast<std::uint16_t>(chosen[i] - parts[part].begin),
                                      static_cast<ActivePair>(example | mark)};
    }
  }
}

void PairLists::sort_part(std::span<const RowPart> parts, std::size_t part,
                          std::vector<std::uint32_t>& counts) {
  const RowPart& own = parts[part];
  Place& place = places_[part];
  counts.assign(own.end - own.begin, 0);
  for (const ByPart& set : by_part_) {
    for (const Choice& choice : set.of(part)) ++counts[choice.row];
  }
  std::uint32_t* const rows = rows_.data() + place.row;
  std::uint32_t* const ends = pair_ends_.data() + place.row;
  ActivePair* const pairs = pairs_.data() + place.pair;
  const std::uint32_t first = own.begin - own.shard_begin;
  std::size_t used = 0;
  std::uint32_t next = 0;
  for (std::uint32_t row = 0; row < counts.size(); ++row) {
    const std::uint32_t begin = next;
    next += std::exchange(counts[row], next);
    // A branch on whether a row is in use would be mispredicted; hence a count that may not grow.
    rows[used] = first + row;
    ends[used] = next;
    used += next != begin ? 1 : 0;
  }
  place.rows = used;
  for (const ByPart& set : by_part_) {
    for (const Choice& choice : set.of(part)) pairs[counts[choice.row]++] = choice.pair;
  }
}

std::uint64_t PairLists::memory_bytes() const {
  std::uint64_t bytes = (part_by_section_.capacity() + rows_.capacity() + pair_ends_.capacity()) *
                            sizeof(std::uint32_t) +
                        pairs_.capacity() * sizeof(ActivePair);
  for (const ByPart& set : by_part_) bytes += set.choices.capacity() * sizeof(Choice);
  for (const auto& counts : counts_) bytes += counts.capacity() * sizeof(std::uint32_t);
  return bytes;
}

}  // namespace gleaner
