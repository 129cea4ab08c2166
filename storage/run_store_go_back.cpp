// Return to an earlier checkpoint of the run, from a kept checkpoint.
#include <fmt/format.h>

#include <algorithm>

#include "common/model/run_plan.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {
namespace {

// Makes the content of one store equal to that of another.
class Copier {
 public:
  Copier(Store& own, Store& kept, SortedWriter& writer) : own_(own), kept_(kept), writer_(writer) {}

  // Copies the keys with begin <= key < end (end empty: to the table's end).
  Result<void> copy(Table table, ByteView begin, ByteView end) {
    if (auto read = read_keys(table, begin, end); !read) return read;
    Result<void> outcome;
    auto scanned = kept_.scan(table, begin, end, [&](ByteView key, ByteView value) {
      outcome = erase_keys_before(table, key);
      if (next_ < keys_.size() && std::ranges::equal(keys_[next_], key)) ++next_;
      if (outcome) outcome = writer_.put(table, key, value);
      return outcome.ok();
    });
    if (!scanned) return scanned;
    if (!outcome) return outcome;
    return erase_keys_before(table, {});
  }

  Result<void> erase(Table table, ByteView begin) {
    if (auto read = read_keys(table, begin, {}); !read) return read;
    return erase_keys_before(table, {});
  }

 private:
  Result<void> read_keys(Table table, ByteView begin, ByteView end) {
    keys_.clear();
    next_ = 0;
    return own_.scan(table, begin, end, [&](ByteView key, ByteView) {
      keys_.emplace_back(key.begin(), key.end());
      return true;
    });
  }

  // An empty `end` erases all that are left.
  Result<void> erase_keys_before(Table table, ByteView end) {
    for (; next_ < keys_.size(); ++next_) {
      if (!end.empty() && !std::ranges::lexicographical_compare(keys_[next_], end)) break;
      if (auto erased = writer_.erase(table, keys_[next_]); !erased) return erased;
    }
    return {};
  }

  Store& own_;
  Store& kept_;
  SortedWriter& writer_;
  std::vector<Bytes> keys_;  // own keys that the copy has not reached yet
  std::size_t next_ = 0;
};

}  // namespace

Result<void> RunStore::go_back(RunStore& kept) {
  Impl& run = *impl_;
  Impl& source = *kept.impl_;
  if (run_name(run.identity) != run_name(source.identity)) {
    return Error{ErrorCode::kIdentity, "the kept checkpoint is of another run"};
  }
  if (source.checkpoint > run.checkpoint) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the kept checkpoint {} is ahead of checkpoint {}", source.checkpoint,
                             run.checkpoint)};
  }
  run.open_fold.reset();
  if (auto discarded = discard_staged(); !discarded) return discarded;
  std::uint64_t bytes = 0;
  for (std::uint32_t s = 0; s < run.map.shard_count(); ++s) {
    bytes += run.map.row_count(ShardId{s}) * row_bytes(run.map, ShardId{s});
  }
  auto writer = run.store->begin_sorted(bytes);
  if (!writer) return writer.error();
  Copier copier(*run.store, *source.store, **writer);
  Result<void> done = (*writer)->erase(Table::kRun, as_bytes(kFoldKey));
  if (done) {
    done =
        put_text(**writer, Table::kRun, as_bytes(kProgressKey),
                 encode_record(ProgressRecord{
                     source.checkpoint, RunPlan(run.identity.model).round_begin(source.checkpoint),
                     source.rate_cuts}));
  }
  if (done) done = copier.copy(Table::kRun, shard_digest_key(ShardId{0}), {});
  for (std::uint32_t s = 0; s < run.map.shard_count() && done; ++s) {
    const RowKeyBytes begin = encode_row_key({ShardId{s}, 0});
    const Bytes end = row_keys_end(ShardId{s});
    done = copier.copy(Table::kRows, begin, end);
    if (done) done = copier.copy(Table::kCodes, begin, end);
  }
  if (done) done = copier.erase(Table::kLedger, encode_receipts_key(source.checkpoint));
  if (done) done = copier.erase(Table::kHistory, encode_history_key(source.checkpoint + 1));
  if (done) done = (*writer)->finish();
  if (!done) return done;
  run.checkpoint = source.checkpoint;
  run.rate_cuts = source.rate_cuts;
  return {};
}

}  // namespace gleaner
