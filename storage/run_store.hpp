// A run on disk: its identity, the last whole checkpoint, commits staged for the next one, and its
// history. Values carry a format version and a checksum; a value that fails either is reported as
// kCorrupt with its table and key, and never used. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "schema/records.hpp"
#include "storage/engine/store.hpp"
#include "storage/run_identity.hpp"

namespace gleaner {

// Gives the rows of [begin, end) of a shard, in their order, that a run begins with instead of what
// initial_row() gives; with codes only if they are wide rows.
using InitialRows =
    std::function<Result<ShardRows>(ShardId shard, std::uint32_t begin, std::uint32_t end)>;

class RunStore {
 public:
  // Takes `store`. Creates the run when the store is empty; otherwise its identity must agree with
  // `identity`, or kIdentity names the differing keys and both values. Agreement: every field of
  // the model is the same, except that `epochs` may have grown, which the store then adopts; and no
  // setting that both know differs. `label_counts` (one a label) is kept, so that initial rows can
  // be made without the data. A new run of which the model says that it began with another one
  // (initial_fingerprint), or that has wide rows, needs `initial_rows`, which are stored with it.
  static Result<std::unique_ptr<RunStore>> create_or_open(std::unique_ptr<Store> store,
                                                          const RunIdentity& identity,
                                                          std::vector<std::uint32_t> label_counts,
                                                          const InitialRows& initial_rows = {});
  // Opens what is there, for tools. kNotFound when the store holds no run. Writes nothing.
  static Result<std::unique_ptr<RunStore>> open(std::unique_ptr<Store> store);
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  [[nodiscard]] const RunIdentity& identity() const;
  [[nodiscard]] const ShardMap& shard_map() const;
  // By label, and by neuron of an output shard; empty for an input shard.
  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const;
  [[nodiscard]] std::vector<std::uint32_t> label_counts(ShardId shard) const;
  // Number of rounds folded: 0 in a new run.
  [[nodiscard]] RoundIndex checkpoint() const;
  // Batches from each of which on the rates are half of what they were to be, ascending; see
  // RunPlan.
  [[nodiscard]] const std::vector<BatchIndex>& rate_cuts() const;

  // Survives the death of the process, and a loss of power once begin_fold() has returned: only a
  // fold waits for the disk. Parts hold ascending rows that follow one another. Idempotent: the
  // same part again is accepted, a different one is kFault; an update that does not fit the shard
  // is kProtocol. A round that is folded already is accepted and not written: its commit is part of
  // the checkpoint.
  Result<void> stage(RoundIndex round, ShardId shard, std::uint32_t part, std::uint32_t parts,
                     const SparseUpdate& update);
  // Whether the checkpoint holds all of the rows, which ascend and are within the shard. Rows of a
  // shard that are not stored have their initial values, but wide rows exist only where stored.
  Result<bool> has_rows(ShardId shard, std::span<const std::uint32_t> rows);
  // Drops what is staged of the shard for `round` and later ones, so that another commit can come
  // in its place. Costs nothing where there is none.
  Result<void> drop_staged(RoundIndex round, ShardId shard);
  // True when every part of the shard's commit for `round` is staged, or folded.
  Result<bool> is_staged(RoundIndex round, ShardId shard);
  // Records that the shard's commit for the round counts, so that keep_settled() keeps it. Not
  // synced; a loss of power leaves no record without the parts that were staged before it. The
  // record goes with the commit. kNotFound unless every part is staged; nothing when the round is
  // folded already.
  Result<void> settle(const SettledRound& settled);
  // Keeps, for each shard, the settled commits that follow one another from checkpoint() on, up to
  // the first one for whose resulting checkpoint `ends` is true, and drops all else that is staged.
  // Returns those that are kept, by round and shard. A damaged commit is dropped too, with later
  // ones of its shard, and told to `on_damage`. Not synced. Comes after resume_fold().
  Result<std::vector<SettledRound>> keep_settled(
      const std::function<bool(RoundIndex checkpoint)>& ends,
      const std::function<void(const Error&)>& on_damage);
  // Folds round `round` == checkpoint() into the rows in one atomic, durable batch together with
  // `history`, whose rate_cuts and rows_digest it sets; requires every shard staged (kCorrupt names
  // the missing one). Any other round is kInvalidArgument. After a failure nothing is folded, or
  // the store's state is unknown if it was the write that failed. kDiskFull, here and in stage(),
  // leaves all as it was: try again.
  Result<void> fold(RoundIndex round, const RoundRecord& history);
  // A fold in steps, for whoever has other things to do meanwhile: each step folds a part of a
  // commit, and true says that the round is folded. Between steps the store is at the checkpoint
  // before, and everything else may be asked of it and staged. A fold that failed, or is begun
  // again, starts from the beginning. step_fold requires one that has begun. begin_fold makes
  // `history`, `receipts` and every part staged before it durable.
  Result<void> begin_fold(RoundIndex round, const RoundRecord& history,
                          const Receipts& receipts = {});
  Result<bool> step_fold();
  // Begins the fold that an earlier process had begun when it ended, to be stepped to its end.
  // False when there is none. kCorrupt when a staged part is damaged.
  Result<bool> resume_fold();
  // Drops everything staged; the open round must be trained again. It is also the way out when a
  // staged part is damaged.
  Result<void> discard_staged();
  // Halves the rates from the first batch after the checkpoint on, and drops everything staged,
  // which was trained at the rates before. Durable.
  Result<void> cut_rates();
  // Puts this run back to the checkpoint at which `kept` holds it, in one durable batch, and drops
  // everything staged. Lease epochs and accounts stay as they are; history and receipts of later
  // checkpoints go. kIdentity when `kept` is another run, kInvalidArgument when it is ahead. After
  // a failure nothing has changed, except that staged commits may be gone.
  Result<void> go_back(RunStore& kept);

  // Rows [begin, end) of a shard that are stored, in the state after checkpoint `base_round`: the
  // folded rows plus staged commits of rounds < base_round that are not folded yet. kNotFound when
  // the store is beyond that checkpoint or a commit it needs is not staged.
  Result<ShardRows> read_rows(ShardId shard, std::uint32_t begin, std::uint32_t end,
                              RoundIndex base_round);
  // Calls `visit` for all rows of a shard as of the checkpoint, at most kRowsPerRead rows at a
  // time, with the first of them; ends at the first error.
  static constexpr std::uint32_t kRowsPerRead = 4096;
  Result<void> visit_rows(
      ShardId shard, const std::function<Result<void>(std::uint32_t begin, ShardRows rows)>& visit);

  // The digest of each shard at checkpoint().
  Result<std::vector<ShardDigest>> shard_digests();

  // Replaces the record of the same checkpoint: an evaluation follows its round's fold. Durable.
  Result<void> put_history(const RoundRecord& record);
  // Without the figures that were measured on another test file than the run's present one.
  Result<std::vector<RoundRecord>> history();
  // The record of one checkpoint, as history() gives it; nullopt where there is none.
  Result<std::optional<RoundRecord>> history_at(RoundIndex checkpoint);
  // The receipts of a folded round. kCorrupt when the record is damaged.
  Result<Receipts> receipts(RoundIndex round);
  // Adds or replaces these accounts. Not synced: the next synced write carries them along.
  Result<void> put_accounts(const std::vector<AccountRecord>& accounts);
  Result<std::vector<AccountRecord>> accounts();
  // That of one identity, or an empty one.
  Result<AccountRecord> account(const KeyId& identity);

  // Takes `count` lease epochs that no lease of this run has borne, whatever crashed, and returns
  // the first. Durable before it returns.
  Result<LeaseEpoch> reserve_lease_epochs(std::uint64_t count);

  // The folder of a frozen store with everything written so far; see Store::snapshot.
  Result<std::string> snapshot();

  // The space that the tables take on the disk; see Store::space.
  Result<std::vector<TableSpace>> space();

  // SHA-256 (64 hex digits) over the last whole checkpoint: identity of the model (not `settings`,
  // and without `epochs`, so that training on does not change the past), progress with the rate
  // cuts of before, every row's weights and state, every table entry, in key order. Not over
  // history, ledger or anything that depends on time or volunteers. kCorrupt when a record is
  // damaged, or a shard's rows are not those that were folded.
  Result<std::string> checkpoint_digest();

 private:
  struct Impl;
  explicit RunStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Which model a reader of the store has: equal for equal runs, checkpoints and rows.
Result<std::string> model_name(RunStore& run);

}  // namespace gleaner
