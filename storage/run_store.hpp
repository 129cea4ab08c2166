// A run on disk: its identity, the last complete checkpoint, commits staged for the next
// checkpoint, and the history. Values carry a format version and a checksum. A value that fails
// either is reported as kCorrupt with its table and key, and is never used. One thread at a time.
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

// Returns the initial rows [begin, end) of a shard, in order, in place of those that initial_row()
// makes. Only wide rows have codes.
using InitialRows =
    std::function<Result<ShardRows>(ShardId shard, std::uint32_t begin, std::uint32_t end)>;

class RunStore {
 public:
  // Takes `store`. Creates the run when the store is empty. Otherwise the stored identity must
  // agree with `identity`: every field of the model is equal, except that `epochs` may have grown
  // (the store adopts the new value), and no setting known to both differs. kIdentity names the
  // differing keys and both values. `label_counts` (one per label) is stored, so that initial rows
  // can be made without the data. `initial_rows` is required, and stored, for a new run that begins
  // with another model (initial_fingerprint) or has wide rows.
  static Result<std::unique_ptr<RunStore>> create_or_open(std::unique_ptr<Store> store,
                                                          const RunIdentity& identity,
                                                          std::vector<std::uint32_t> label_counts,
                                                          const InitialRows& initial_rows = {});
  // Opens an existing run, for tools. kNotFound when the store holds no run. Writes nothing.
  static Result<std::unique_ptr<RunStore>> open(std::unique_ptr<Store> store);
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  [[nodiscard]] const RunIdentity& identity() const;
  [[nodiscard]] const ShardMap& shard_map() const;
  // Label counts: by label; by neuron of an output shard (empty for an input shard).
  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const;
  [[nodiscard]] std::vector<std::uint32_t> label_counts(ShardId shard) const;
  // Number of folded rounds: 0 in a new run.
  [[nodiscard]] RoundIndex checkpoint() const;
  // The learning rates are halved from each of these batches on, ascending; see RunPlan.
  [[nodiscard]] const std::vector<BatchIndex>& rate_cuts() const;

  // Stages a part of a commit. The part survives the death of the process, and a power loss once
  // begin_fold() has returned: only a fold waits for the disk. Parts hold ascending rows that
  // follow one another. Staging the same part again is accepted; a different part is kFault; an
  // update that does not fit the shard is kProtocol. A part for a folded round is accepted and not
  // written, since the checkpoint includes its commit.
  Result<void> stage(RoundIndex round, ShardId shard, std::uint32_t part, std::uint32_t parts,
                     const SparseUpdate& update);
  // Whether the checkpoint holds all of `rows`, which ascend and are within the shard. A row that
  // is not stored has its initial values, except wide rows, which exist only when stored.
  Result<bool> has_rows(ShardId shard, std::span<const std::uint32_t> rows);
  // Drops the shard's staged commits for `round` and later rounds, so that other commits can
  // replace them. Costs nothing where there are none.
  Result<void> drop_staged(RoundIndex round, ShardId shard);
  // Whether every part of the shard's commit for `round` is staged or folded.
  Result<bool> is_staged(RoundIndex round, ShardId shard);
  // Records that the shard's commit for the round counts, so that keep_settled() keeps it. Not
  // synced, but a power loss never leaves the record without the parts staged before it. The record
  // is erased with the commit. kNotFound unless every part is staged. Does nothing when the round
  // is folded.
  Result<void> settle(const SettledRound& settled);
  // Keeps each shard's consecutive settled commits from checkpoint() on, up to the first commit
  // whose resulting checkpoint satisfies `ends`. Drops everything else that is staged. Returns the
  // kept commits, by round and shard. A damaged commit is reported to `on_damage` and dropped, with
  // the shard's later commits. Not synced. Must follow resume_fold().
  Result<std::vector<SettledRound>> keep_settled(
      const std::function<bool(RoundIndex checkpoint)>& ends,
      const std::function<void(const Error&)>& on_damage);
  // Folds round `round` == checkpoint() into the rows, in one atomic, durable batch together with
  // `history`, whose rate_cuts and rows_digest it sets. Requires the commits of every shard
  // (kCorrupt names a missing shard); kInvalidArgument for another round. After a failure nothing
  // is folded, but after a failed write the store's state is unknown. kDiskFull, here and in
  // stage(), changes nothing: try again.
  Result<void> fold(RoundIndex round, const RoundRecord& history);
  // A fold in steps, for a caller with other work in between. Each step folds a part of a commit;
  // true means that the round is folded. Between steps the store is at the earlier checkpoint and
  // accepts all other calls. A fold that failed or is begun again starts from the beginning.
  // begin_fold() makes `history`, `receipts` and every part staged before it durable.
  Result<void> begin_fold(RoundIndex round, const RoundRecord& history,
                          const Receipts& receipts = {});
  Result<bool> step_fold();
  // Begins a fold that an earlier process left unfinished, to be continued by step_fold(). False
  // when there is none. kCorrupt when a staged part is damaged.
  Result<bool> resume_fold();
  // Drops everything staged; the open round must be trained again. Also the remedy for a damaged
  // staged part.
  Result<void> discard_staged();
  // Halves the learning rates from the first batch after the checkpoint on. Drops everything
  // staged, which was trained at the earlier rates. Durable.
  Result<void> cut_rates();
  // Puts this run back to the checkpoint of the kept run `kept`, in one durable batch, and drops
  // everything staged. Lease epochs and accounts stay; history and receipts of later checkpoints
  // are erased. kIdentity when `kept` is a different run, kInvalidArgument when it is ahead. After
  // a failure nothing has changed, except that staged commits may be dropped.
  Result<void> go_back(RunStore& kept);

  // The stored rows in [begin, end) of a shard after checkpoint `base_round`: folded rows plus
  // staged commits of rounds < base_round that are not folded yet. kNotFound when the store is
  // beyond that checkpoint or a required commit is not staged.
  Result<ShardRows> read_rows(ShardId shard, std::uint32_t begin, std::uint32_t end,
                              RoundIndex base_round);
  // Visits all rows of a shard as of the checkpoint, at most kRowsPerRead rows at a time; `begin`
  // is the first of them. Ends at the first error.
  static constexpr std::uint32_t kRowsPerRead = 4096;
  Result<void> visit_rows(
      ShardId shard, const std::function<Result<void>(std::uint32_t begin, ShardRows rows)>& visit);

  // The digest of each shard at checkpoint().
  Result<std::vector<ShardDigest>> shard_digests();

  // Replaces the record of the same checkpoint, since an evaluation follows its round's fold.
  // Durable.
  Result<void> put_history(const RoundRecord& record);
  // The history without figures measured on another test file than the run's present test file.
  Result<std::vector<RoundRecord>> history();
  // The record of one checkpoint, as history() gives it; nullopt where there is none.
  Result<std::optional<RoundRecord>> history_at(RoundIndex checkpoint);
  // The receipts of a folded round. kCorrupt when the record is damaged.
  Result<Receipts> receipts(RoundIndex round);
  // Adds or replaces these accounts. Not synced: the next synced write makes them durable.
  Result<void> put_accounts(const std::vector<AccountRecord>& accounts);
  Result<std::vector<AccountRecord>> accounts();
  // The account of one identity, or an empty account.
  Result<AccountRecord> account(const KeyId& identity);

  // Reserves `count` lease epochs that no lease of this run has used, even before a crash, and
  // returns the first. Durable before it returns.
  Result<LeaseEpoch> reserve_lease_epochs(std::uint64_t count);

  // The folder of a frozen store with everything written up to now; see Store::snapshot.
  Result<std::string> snapshot();

  // The disk space of each table; see Store::space.
  Result<std::vector<TableSpace>> space();

  // SHA-256 (64 hex digits) over the last complete checkpoint: the model's identity (without
  // `settings` and `epochs`, so that training on does not change the past), progress with earlier
  // learning-rate halvings, and, in key order, every row's weights and state and every row's codes.
  // History, ledger and anything that depends on time or volunteers are not included. kCorrupt when
  // a record is damaged or a shard's rows are not the rows that were folded.
  Result<std::string> checkpoint_digest();

 private:
  struct Impl;
  explicit RunStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The name of the run: 16 digits, equal for equal models, whatever `epochs` is.
Result<std::string> model_name(RunStore& run);

}  // namespace gleaner
