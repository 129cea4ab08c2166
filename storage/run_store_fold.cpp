// A fold: the staged commits of a round become the rows of the next checkpoint.
#include <fmt/format.h>

#include <algorithm>

#include "common/model/run_plan.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {

Result<void> RunStore::Impl::fold_update(ShardId shard, const SparseUpdate& update,
                                         SortedWriter& writer, ShardDigest& digest) {
  Result<SelectedRows> selected = rows.read_selected(shard, update.rows);
  if (!selected) return selected.error();
  const std::size_t width = map.row_width(shard);
  for (std::size_t i = 0; i < update.rows.size(); ++i) {
    const std::span<float> values = std::span(selected->values).subspan(i * width, width);
    if (selected->is_stored[i] == 0) {
      if (map.is_wide()) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("the commit of shard {} changes row {}, which the shard does not "
                                 "have",
                                 raw(shard), update.rows[i])};
      }
      initial_values(shard, update.rows[i], values);
      ++digest.rows;
    }
    add_row_delta(update, i, values);
  }
  const std::size_t tables = map.is_wide() ? 0 : map.codes_per_row(shard);
  std::span<const std::uint32_t> row_codes;
  if (tables > 0) row_codes = codes.of(selected->values, width);
  for (std::size_t i = 0; i < update.rows.size(); ++i) {
    const std::span<const float> values = std::span(selected->values).subspan(i * width, width);
    const Result<std::uint64_t> folded =
        rows.put(writer, {shard, update.rows[i]}, values, update.states[i],
                 row_codes.subspan(i * tables, tables));
    if (!folded) return folded.error();
    digest.sum += *folded - selected->digests[i];
  }
  return {};
}

Result<bool> RunStore::Impl::step(Fold& fold) {
  const ShardId shard{fold.shard};
  if (fold.part == 0) {
    const Result<ShardDigest> digest = read_digest(shard);
    if (!digest) return digest.error();
    fold.digests.push_back(*digest);
  }
  const Result<SparseUpdate> update = staged.part(fold.round(), shard, fold.part);
  if (!update) return update.error();
  if (auto folded = fold_update(shard, *update, *fold.writer, fold.digests.back()); !folded) {
    return folded.error();
  }
  if (++fold.part < staged.part_count(fold.round(), shard)) return false;
  auto put = put_text(*fold.writer, Table::kRun, shard_digest_key(shard),
                      encode_record(fold.digests.back()));
  if (!put) return put.error();
  fold.part = 0;
  if (++fold.shard < map.shard_count()) return false;
  if (!fold.receipts.shards.empty()) {
    for (Receipt& receipt : fold.receipts.shards) {
      receipt.digest = fold.digests[raw(receipt.shard)];
    }
    put = put_text(*fold.writer, Table::kLedger, encode_receipts_key(fold.round()),
                   encode_receipts(fold.receipts));
    if (!put) return put.error();
  }
  fold.history.rows_digest = rows_digest(fold.digests);
  put = put_text(*fold.writer, Table::kHistory, encode_history_key(fold.history.checkpoint),
                 encode_record(fold.history));
  if (!put) return put.error();
  if (auto written = fold.writer->finish(); !written) return written.error();
  return true;
}

std::uint64_t RunStore::Impl::fold_bytes(RoundIndex round) const {
  std::uint64_t bytes = 0;
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    bytes += staged.row_count(round, ShardId{s}) * row_bytes(map, ShardId{s});
  }
  return bytes;
}

Result<std::optional<ShardId>> RunStore::Impl::first_missing(RoundIndex round) {
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const Result<bool> is_whole = staged.is_whole(round, ShardId{s});
    if (!is_whole) return is_whole.error();
    if (!*is_whole) return std::optional(ShardId{s});
  }
  return std::optional<ShardId>();
}

Result<void> RunStore::begin_fold(RoundIndex round, const RoundRecord& history,
                                  const Receipts& receipts) {
  Impl& run = *impl_;
  run.open_fold.reset();
  const RunPlan plan(run.identity.model);
  if (round != run.checkpoint || round >= plan.round_count()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("round {} cannot be folded: {} of the run's {} rounds are", round,
                             run.checkpoint, plan.round_count())};
  }
  if (history.checkpoint != round + 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the history of checkpoint {} does not belong to round {}",
                             history.checkpoint, round)};
  }
  const Result<std::optional<ShardId>> missing = run.first_missing(round);
  if (!missing) return missing.error();
  if (*missing) {
    return Error{ErrorCode::kCorrupt, fmt::format("round {} cannot be folded: the commit of shard "
                                                  "{} is not staged",
                                                  round, raw(**missing))};
  }
  WriteBatch decision;
  put_text(decision, Table::kRun, as_bytes(kFoldKey), encode_record(history));
  if (!receipts.shards.empty()) {
    put_text(decision, Table::kLedger, encode_receipts_key(round), encode_receipts(receipts));
  }
  Result<void> decided = run.store->write(std::move(decision), Durability::kSync);
  if (!decided) return decided;
  auto writer = run.store->begin_sorted(run.fold_bytes(round));
  if (!writer) return writer.error();
  Result<void> put =
      put_text(**writer, Table::kRun, as_bytes(kProgressKey),
               encode_record(ProgressRecord{round + 1, plan.round_end(round), run.rate_cuts}));
  if (!put) return put;
  run.open_fold.emplace(Impl::Fold{history, receipts, std::move(*writer), 0, 0, {}});
  run.open_fold->history.rate_cuts = static_cast<std::uint32_t>(run.rate_cuts.size());
  return {};
}

Result<bool> RunStore::step_fold() {
  Impl& run = *impl_;
  GLEANER_CHECK(run.open_fold.has_value());
  const RoundIndex round = run.open_fold->round();
  const Result<bool> folded = run.step(*run.open_fold);
  if (folded && !*folded) return false;
  run.open_fold.reset();
  if (!folded) return folded;
  run.checkpoint = round + 1;
  // Separate from the fold, and not synced: staged commits of a folded round are ignored, and those
  // that survive a crash are erased with the next round's.
  if (auto erased = run.staged.erase_through(round); !erased) return erased.error();
  return true;
}

Result<bool> RunStore::resume_fold() {
  Impl& run = *impl_;
  const Result<std::optional<std::string>> text =
      get_text(*run.store, Table::kRun, as_bytes(kFoldKey));
  if (!text) return text.error();
  if (!text->has_value()) return false;
  const std::optional<RoundRecord> decided = decode_record<RoundRecord>(**text);
  if (!decided) {
    return corrupt_record(Table::kRun, as_bytes(kFoldKey), "it is not a history record");
  }
  if (decided->checkpoint != run.checkpoint + 1) return false;
  const Result<std::optional<ShardId>> missing = run.first_missing(run.checkpoint);
  if (!missing) return missing.error();
  if (*missing) return false;  // the staged parts were discarded since
  const Result<Receipts> receipts = this->receipts(run.checkpoint);
  if (!receipts) return receipts.error();
  if (auto begun = begin_fold(run.checkpoint, *decided, *receipts); !begun) return begun.error();
  return true;
}

Result<void> RunStore::fold(RoundIndex round, const RoundRecord& history) {
  if (auto begun = begin_fold(round, history); !begun) return begun;
  while (true) {
    const Result<bool> folded = step_fold();
    if (!folded) return folded.error();
    if (*folded) return {};
  }
}

}  // namespace gleaner
