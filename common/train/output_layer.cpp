#include "common/train/output_layer.hpp"

#include <xxhash.h>

#include <array>
#include <bit>
#include <utility>

#include "common/result.hpp"

namespace gleaner {
namespace {

// Parts of a shard per thread: more than one, since parts take unequal time.
constexpr std::size_t kPartsPerThread = 4;

std::uint32_t cut(std::size_t count, std::size_t part, std::size_t parts) {
  return static_cast<std::uint32_t>(count * part / parts);
}

}  // namespace

OutputLayer::OutputLayer(const ShardContext& context, ThreadPool& pool,
                         std::span<ShardScratch> scratch)
    : context_(context),
      pool_(pool),
      scratch_(scratch),
      tables_(context.sim_hash == nullptr ? 0 : context.config.tables, context.config.hash_bits),
      sets_(pool.threads()),
      lists_(kFusedBatches),
      counts_(kFusedBatches) {
  GLEANER_CHECK(scratch.size() >= pool.threads());
}

void OutputLayer::hold(std::span<OutputShard* const> shards) {
  shards_.assign(shards.begin(), shards.end());
  held_.clear();
  std::vector<const ShardCodes*> codes;
  for (const OutputShard* shard : shards_) {
    held_.push_back({shard->id(), shard->neurons(), false});
    codes.push_back(&shard->codes());
  }
  tables_.hold(codes);
  are_tables_stale_ = true;
}

void OutputLayer::rebuild_tables() {
  if (!std::exchange(are_tables_stale_, false)) return;
  pool_.parallel_for(tables_.tables(), [this](std::size_t table, unsigned /*worker*/) {
    tables_.rebuild(static_cast<std::uint32_t>(table));
  });
}

void OutputLayer::divide(std::span<OutputShard* const> shards) {
  parts_begin_.clear();
  parts_.clear();
  auto next = shards.begin();
  const std::size_t whole_shards = shards.size() - shards.size() % pool_.threads();
  for (std::size_t place = 0; place < shards_.size(); ++place) {
    held_[place].is_trained = next != shards.end() && *next == shards_[place];
    if (!held_[place].is_trained) continue;
    ++next;
    const std::size_t wanted =
        parts_begin_.size() < whole_shards ? 1 : kPartsPerThread * pool_.threads();
    parts_begin_.push_back(parts_.size());
    cut_into_parts(place, tables_.begin(place), shards_[place]->rows().rows(), wanted, parts_);
  }
  GLEANER_CHECK(next == shards.end());
  parts_begin_.push_back(parts_.size());
}

void OutputLayer::train(std::span<const ShardBatch> batches, std::span<OutputShard* const> shards,
                        std::span<ShardOutcome> outcomes) {
  GLEANER_CHECK(!batches.empty() && batches.size() <= kFusedBatches);
  GLEANER_CHECK(outcomes.size() == shards.size() * batches.size());
  const std::size_t workers = scratch_.size();
  pool_.parallel_for(workers * batches.size(), [&](std::size_t index, unsigned /*worker*/) {
    const std::size_t batch = index / workers;
    scratch_[index % workers].clear_gradient(batch, batches[batch].queries->examples(),
                                             context_.config.hidden);
  });
  rebuild_tables();
  divide(shards);
  for (std::size_t i = 0; i < batches.size(); ++i) choose(batches[i], i);
  part_outcomes_.assign(parts_.size() * batches.size(), {});
  for_each_shard(shards.size(), [&](std::size_t index, Team team) {
    train_shard(batches, *shards[index], index,
                outcomes.subspan(index * batches.size(), batches.size()), team);
  });
}

void OutputLayer::choose(const ShardBatch& batch, std::size_t index) {
  const std::uint32_t examples = batch.queries->examples();
  counts_[index].clear(examples, shards_.size());
  pool_.parallel_for(sets_.size(), [&](std::size_t part, unsigned worker) {
    scratch_[worker].chooser.choose(
        *batch.queries, *batch.positives, {held_, tables_},
        {cut(examples, part, sets_.size()), cut(examples, part + 1, sets_.size())}, sets_[part],
        counts_[index]);
  });
  lists_[index].build(sets_, parts_, pool_);
}

void OutputLayer::train_shard(std::span<const ShardBatch> batches, OutputShard& shard,
                              std::size_t index, std::span<ShardOutcome> outcomes, Team team) {
  const std::size_t first = parts_begin_[index];
  const std::size_t parts = parts_begin_[index + 1] - first;
  const std::span<const PairLists> lists = std::span(lists_).first(batches.size());
  if (team.threads() > 1) {
    for (const PairLists& of_batch : lists) {
      for (std::size_t part = first; part < first + parts; ++part) shard.touch(of_batch.rows(part));
    }
  }
  team.for_each(parts, [&](std::size_t part, unsigned worker) {
    shard.train_part(
        batches, lists, first + part,
        std::span(part_outcomes_).subspan((first + part) * batches.size(), batches.size()),
        team.scratch()[worker]);
  });
  for (std::size_t i = 0; i < batches.size(); ++i) {
    outcomes[i] = {.shard = shard.id()};
    for (std::size_t part = first; part < first + parts; ++part) {
      outcomes[i].active += part_outcomes_[part * batches.size() + i].active;
      outcomes[i].loss += part_outcomes_[part * batches.size() + i].loss;
    }
  }
  round_gradients(batches, parts_[first].shard, outcomes, team);
}

void OutputLayer::round_gradients(std::span<const ShardBatch> batches, std::size_t place,
                                  std::span<ShardOutcome> outcomes, Team team) {
  std::vector<BatchScratch>& shared = team.scratch()[0].batches;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    shared[i].shard_checks.resize(batches[i].queries->examples() * kCheckWords);
  }
  const std::size_t parts = team.threads();
  team.for_each(batches.size() * parts, [&](std::size_t index, unsigned worker) {
    const std::size_t batch = index / parts;
    const std::size_t part = index % parts;
    const std::uint32_t examples = batches[batch].queries->examples();
    round_some_gradients(batch, {cut(examples, part, parts), cut(examples, part + 1, parts)}, place,
                         team, team.scratch()[worker]);
  });
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::vector<std::uint32_t>& checks = shared[i].shard_checks;
    outcomes[i].gradient_digest = XXH3_64bits(checks.data(), checks.size() * sizeof(checks[0]));
  }
}

void OutputLayer::round_some_gradients(std::size_t batch, ExampleRange examples, std::size_t place,
                                       Team team, ShardScratch& mine) {
  const ModelConfig& config = context_.config;
  const auto addend = std::bit_cast<std::uint32_t>(gradient_magic(config.gradient_step_log2));
  mine.sums.resize(team.threads());
  std::array<std::uint32_t, kCheckWords> check;
  BatchScratch& first = team.scratch()[0].batches[batch];
  for (std::uint32_t example = examples.begin; example < examples.end; ++example) {
    for (std::size_t worker = 0; worker < mine.sums.size(); ++worker) {
      mine.sums[worker] =
          team.scratch()[worker].batches[batch].sums.data() + std::size_t{example} * config.hidden;
    }
    context_.kernels.round_gradient({.width = config.hidden,
                                     .sums = mine.sums.data(),
                                     .sum_count = mine.sums.size(),
                                     .addend = counts_[batch].at(example, place) * addend,
                                     .check = check.data()});
    // The first worker now has the sum of all. The difference is the part that the shard added.
    for (std::size_t l = 0; l < kCheckWords; ++l) {
      const std::size_t at = example * kCheckWords + l;
      std::uint32_t before = 0;
      for (ShardScratch& other : team.scratch()) {
        before += std::exchange(other.batches[batch].checks[at], 0);
      }
      first.checks[at] = check[l];
      first.shard_checks[at] = check[l] - before;
    }
  }
}

std::uint64_t OutputLayer::memory_bytes() const {
  std::uint64_t bytes = tables_.memory_bytes();
  for (const PairLists& lists : lists_) bytes += lists.memory_bytes();
  for (const ActiveSets& sets : sets_) bytes += sets.memory_bytes();
  return bytes;
}

}  // namespace gleaner
