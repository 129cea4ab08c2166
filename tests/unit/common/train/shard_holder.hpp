// A trainer with one shard and a store beside it that follows its commits; loading a shard from
// such a store.
#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/common/train/train_fixture.hpp"

namespace gleaner::test {

// Cuts rows into `parts` chunks numbered from `first`.
inline std::vector<ShardChunk> chunks_of(const ModelConfig& config, const LeaseRef& lease,
                                         const ShardRows& rows, std::uint32_t first,
                                         std::uint32_t parts) {
  const std::size_t width = config.hidden + std::size_t{1};
  const std::size_t tables = ShardMap(config).codes_per_row(lease.shard);
  std::vector<ShardChunk> chunks(parts);
  for (std::uint32_t part = 0; part < parts; ++part) {
    chunks[part].lease = lease;
    chunks[part].chunk = first + part;
  }
  const auto copy = [](const auto& from, auto& to, std::size_t begin, std::size_t count) {
    const auto at = from.begin() + static_cast<std::ptrdiff_t>(begin);
    to.insert(to.end(), at, at + static_cast<std::ptrdiff_t>(count));
  };
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    ShardRows& target = chunks[i % parts].rows;
    target.rows.push_back(rows.rows[i]);
    target.states.push_back(rows.states[i]);
    copy(rows.values, target.values, i * width, width);
    copy(rows.codes, target.codes, i * tables, tables);
    if (!rows.stale_codes.empty()) target.stale_codes.push_back(rows.stale_codes[i]);
  }
  return chunks;
}

// Trains one shard from the start to before `until`, with a store that follows its commits.
struct Holder {
  ModelConfig config;
  LeaseRef lease = lease_of(2);
  ThreadPool pool{1};
  ShardTrainer trainer;
  StoredShard store;

  explicit Holder(const ModelConfig& model) : config(model), trainer(config, pool) {
    load_initial(trainer, config, {lease});
  }

  void train(BatchIndex begin, BatchIndex end) {
    for (BatchIndex batch = begin; batch < end; ++batch) {
      const auto outcome = train_ok(trainer, make_unit(config, {lease}, batch, 1));
      for (const ShardCommit& commit : outcome.commits) {
        store.apply(config, initial_grant(config, lease), commit.update);
      }
    }
  }
};

// Loads stored rows and handed-over rows under `lease`, chunks in descending order.
inline void load(ShardTrainer& trainer, const ModelConfig& config, const LeaseRef& lease,
                 const StoredShard& store, const std::vector<HandOver>& hand_over,
                 RoundIndex base_round, BatchIndex next_batch) {
  LeaseGrant grant = initial_grant(config, lease);
  grant.base_round = base_round;
  grant.next_batch = next_batch;
  std::vector<ShardChunk> chunks = chunks_of(config, lease, store.read(), 0, 3);
  grant.base_chunks = 3;
  for (const HandOver& part : hand_over) {
    for (ShardChunk& chunk :
         chunks_of(config, lease, part.rows, static_cast<std::uint32_t>(chunks.size()), 2)) {
      chunks.push_back(std::move(chunk));
    }
  }
  grant.chunks = static_cast<std::uint32_t>(chunks.size());
  REQUIRE(trainer.begin_load(grant).ok());
  for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk) {
    const Result<void> loaded = trainer.load_chunk(*chunk);
    if (!loaded) FAIL(loaded.error().message);
  }
  REQUIRE(trainer.finish_load(lease).ok());
}

}  // namespace gleaner::test
