// State that the sources of RunStore share: private to storage/ and to tests that forge a store.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/train/sim_hash.hpp"
#include "storage/row_tables.hpp"
#include "storage/run_records.hpp"
#include "storage/run_store.hpp"
#include "storage/staged_commits.hpp"

namespace gleaner {

struct RunStore::Impl {
  Impl(std::unique_ptr<Store> taken, RunIdentity run, std::vector<std::uint32_t> counts,
       ProgressRecord progress)
      : store(std::move(taken)),
        identity(std::move(run)),
        map(identity.model),
        label_counts(std::move(counts)),
        checkpoint(progress.checkpoint),
        rate_cuts(std::move(progress.rate_cuts)),
        rows(*store, map),
        staged(*store, map, checkpoint),
        codes(identity.model) {}

  // A round that is being folded.
  struct Fold {
    RoundRecord history;  // rows_digest is set at the end
    Receipts receipts;    // digests are set at the end
    std::unique_ptr<SortedWriter> writer;
    std::uint32_t shard = 0;  // the next part
    std::uint32_t part = 0;
    std::vector<ShardDigest> digests;  // by shard; the last one up to the folded part

    [[nodiscard]] RoundIndex round() const { return history.checkpoint - 1; }
  };

  // The row's values before training.
  void initial_values(ShardId shard, std::uint32_t row, std::span<float> values) const;
  // `base` with those rows of `update` that lie in [begin, end).
  ShardRows overlay(ShardId shard, std::uint32_t begin, std::uint32_t end, const ShardRows& base,
                    const SparseUpdate& update) const;
  Result<bool> step(Fold& fold);
  Result<void> fold_update(ShardId shard, const SparseUpdate& update, SortedWriter& writer,
                           ShardDigest& digest);
  // The approximate bytes that a fold will write. Requires that the round's commits are complete.
  [[nodiscard]] std::uint64_t fold_bytes(RoundIndex round) const;
  Result<ShardDigest> read_digest(ShardId shard);
  // The first shard whose commit for the round is not completely staged.
  Result<std::optional<ShardId>> first_missing(RoundIndex round);

  std::unique_ptr<Store> store;
  RunIdentity identity;
  ShardMap map;
  std::vector<std::uint32_t> label_counts;  // one per label
  RoundIndex checkpoint = 0;
  std::vector<BatchIndex> rate_cuts;
  RowTables rows;
  StagedCommits staged;
  RowCodes codes;
  std::optional<Fold> open_fold;  // writes to `store`
};

// Puts a new run into an empty store, in one batch: the store then has a complete run or none.
Result<void> create_run(Store& store, const RunIdentity& identity,
                        std::span<const std::uint32_t> label_counts,
                        const InitialRows& initial_rows);
IdentityRecord record_of(const RunIdentity& identity);

}  // namespace gleaner
