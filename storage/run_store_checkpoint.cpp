// Staged commits become rows: for a checkpoint for good, and on the way to a reader who asks for a
// checkpoint that is not folded yet.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/run_plan.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "storage/record.hpp"
#include "storage/run_store.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {
void RunStore::Impl::initial_values(ShardId shard, std::uint32_t row,
                                    std::span<float> values) const {
  std::uint32_t count = 0;
  if (map.is_output(shard) && !map.is_wide()) {
    count = label_counts[map.label_of_neuron(map.neurons(shard).begin + row)];
  }
  initial_row(identity.model, map, shard, row, count, values);
}

ShardRows RunStore::Impl::overlay(ShardId shard, std::uint32_t begin, std::uint32_t end,
                                  const ShardRows& base, const SparseUpdate& update) const {
  const std::size_t width = map.row_width(shard);
  ShardRows merged;
  std::vector<float> initial(width);
  const auto append = [&](std::uint32_t row, std::span<const float> values, float state) {
    merged.rows.push_back(row);
    merged.values.insert(merged.values.end(), values.begin(), values.end());
    merged.states.push_back(state);
  };
  const auto append_base = [&](std::size_t i) {
    append(base.rows[i], std::span(base.values).subspan(i * width, width), base.states[i]);
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < update.rows.size(); ++i) {
    const std::uint32_t row = update.rows[i];
    if (row < begin || row >= end) continue;
    while (next < base.rows.size() && base.rows[next] < row) append_base(next++);
    std::span<const float> values = initial;
    if (next < base.rows.size() && base.rows[next] == row) {
      values = std::span(base.values).subspan(next++ * width, width);
    } else {
      initial_values(shard, row, initial);
    }
    append(row, values, update.states[i]);
    add_row_delta(update, i, std::span(merged.values).last(width));
  }
  while (next < base.rows.size()) append_base(next++);
  if (map.is_wide()) merged.codes = base.codes;
  return merged;
}

Result<ShardRows> RunStore::read_rows(ShardId shard, std::uint32_t begin, std::uint32_t end,
                                      RoundIndex base_round) {
  Impl& run = *impl_;
  if (raw(shard) >= run.map.shard_count() || end > run.map.row_count(shard)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the run has no shard {} with rows {} to {}", raw(shard), begin, end)};
  }
  if (base_round < run.checkpoint) {
    return Error{ErrorCode::kNotFound, fmt::format("checkpoint {} is gone: the store is at {}",
                                                   base_round, run.checkpoint)};
  }
  Result<ShardRows> rows = run.rows.read_range(shard, begin, end);
  if (!rows || run.checkpoint == base_round) return rows;
  for (RoundIndex round = run.checkpoint; round < base_round; ++round) {
    auto visited = run.staged.visit(round, shard, begin, end, [&](const SparseUpdate& update) {
      rows = run.overlay(shard, begin, end, *rows, update);
      return Result<void>();
    });
    if (!visited) return visited.error();
  }
  // Which features a wide row has never changes, so its codes are those of the checkpoint.
  if (run.map.is_wide()) {
    if (rows->rows.size() * run.map.codes_per_row(shard) == rows->codes.size()) return rows;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("a staged commit of shard {} changes a row that the shard does not "
                             "have",
                             raw(shard))};
  }
  if (run.map.codes_per_row(shard) > 0) {
    const auto codes = run.codes.of(rows->values, run.map.row_width(shard));
    rows->codes.assign(codes.begin(), codes.end());
  }
  return rows;
}

Result<void> RunStore::visit_rows(
    ShardId shard, const std::function<Result<void>(std::uint32_t begin, ShardRows rows)>& visit) {
  const std::uint32_t rows = shard_map().row_count(shard);
  for (std::uint32_t begin = 0; begin < rows; begin += std::min(kRowsPerRead, rows - begin)) {
    Result<ShardRows> read =
        read_rows(shard, begin, begin + std::min(kRowsPerRead, rows - begin), checkpoint());
    if (!read) return read.error();
    if (auto visited = visit(begin, *std::move(read)); !visited) return visited;
  }
  return {};
}

Result<ShardDigest> RunStore::Impl::read_digest(ShardId shard) {
  const Bytes key = shard_digest_key(shard);
  const Result<std::optional<std::string>> text = get_text(*store, Table::kRun, key);
  if (!text) return text.error();
  // A shard that no commit has changed yet has none.
  if (!text->has_value()) return ShardDigest{};
  const std::optional<ShardDigest> digest = decode_record<ShardDigest>(**text);
  if (!digest) return corrupt_record(Table::kRun, key, "it is not a shard's digest");
  return *digest;
}

Result<std::vector<ShardDigest>> RunStore::shard_digests() {
  std::vector<ShardDigest> digests;
  for (std::uint32_t shard = 0; shard < impl_->map.shard_count(); ++shard) {
    const Result<ShardDigest> digest = impl_->read_digest(ShardId{shard});
    if (!digest) return digest.error();
    digests.push_back(*digest);
  }
  return digests;
}

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

Result<Receipts> RunStore::receipts(RoundIndex round) {
  const ReceiptsKeyBytes key = encode_receipts_key(round);
  const auto text = get_text(*impl_->store, Table::kLedger, key);
  if (!text) return text.error();
  if (!text->has_value()) return Receipts();
  auto receipts = decode_receipts(**text);
  const bool is_sound = receipts && (receipts->shards.empty() ||
                                     raw(receipts->shards.back().shard) < impl_->map.shard_count());
  if (!is_sound) return corrupt_record(Table::kLedger, key, "it is not a list of receipts");
  return std::move(*receipts);
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
  // Apart from the fold, and not synced: what is staged for a folded round counts for nothing, and
  // whatever of it survives a crash is erased with the next round's.
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
  if (*missing) return false;  // what was staged has been discarded since
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

// Back to an earlier checkpoint of the run, from a kept one.

namespace {

// Writes what makes one store hold what another holds.
class Copier {
 public:
  Copier(Store& own, Store& kept, SortedWriter& writer) : own_(own), kept_(kept), writer_(writer) {}

  // For begin <= key < end (end empty: to the table's end).
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

  // All that are left where `end` is empty.
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
  std::vector<Bytes> keys_;  // of the own store that are still to be passed
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
