// A small run for the store's tests: its identity, and commits made from a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/ids.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/run_store.hpp"

namespace gleaner::test {

// 3 output shards with tables, 2 input shards, 2 epochs of 4 rounds.
RunIdentity small_identity();
std::vector<std::uint32_t> small_label_counts(const RunIdentity& identity);
// The run on `disk`, made there when it has none.
std::unique_ptr<RunStore> open_small(const MemoryStore& disk,
                                     const RunIdentity& identity = small_identity());

// A plausible commit: about half of the shard's rows, a function of the arguments alone.
SparseUpdate make_update(const ShardMap& map, ShardId shard, RoundIndex round,
                         std::uint64_t seed = 1);
// `update` cut into `parts` with about as many rows each.
std::vector<SparseUpdate> cut(const ShardMap& map, ShardId shard, const SparseUpdate& update,
                              std::uint32_t parts);
RoundRecord make_history(RoundIndex checkpoint);
// Receipts without digests: names of holders and auditors tell shard and round; nobody audited one
// of them.
Receipts make_receipts(const ShardMap& map, RoundIndex round);

// With figures and people that tell shard and round.
SettledRound make_settled(RoundIndex round, ShardId shard);

// Stages every shard's commit for the round, some in several parts.
Result<void> stage_round(RunStore& run, RoundIndex round, std::uint64_t seed = 1);
// Settles every shard's commit for the round, which is staged.
Result<void> settle_round(RunStore& run, RoundIndex round);
// Stages and folds rounds until the store holds checkpoint `checkpoint`.
Result<void> train_to(RunStore& run, RoundIndex checkpoint, std::uint64_t seed = 1);

}  // namespace gleaner::test
