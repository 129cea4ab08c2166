
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "common/limits.hpp"
#include "common/model/model_fields.hpp"
#include "common/model/run_plan.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/record.hpp"
#include "storage/row_tables.hpp"
#include "storage/run_store.hpp"

namespace gleaner {
namespace {

// More lease epochs than can have been used since the backup was made.
constexpr std::uint64_t kEpochMargin = std::uint64_t{1} << 32;

struct StoredRow {
  Bytes values_and_state;
  std::vector<std::uint32_t> codes;
};

using ShardContent = std::map<std::uint32_t, StoredRow>;  // by row

class Repairer {
 public:
  Repairer(Store& damaged, Store& backup, Store& target)
      : damaged_(damaged), backup_(backup), target_(target) {}

  Result<RepairOutcome> run();

 private:
  Result<void> settle_run();
  Result<void> copy_run_records();
  Result<void> settle_shards_before(std::uint32_t shard);
  Result<void> settle_shard(ShardId shard);
  Result<void> write_shard(ShardId shard, const ShardContent& content);
  Result<ShardContent> read_backup(ShardId shard);
  [[nodiscard]] std::optional<ShardDigest> expected_digest(ShardId shard) const;
  [[nodiscard]] ShardDigest digest_of(ShardId shard, const ShardContent& content) const;
  Result<void> settle_history();
  Result<void> settle_ledger();
  Result<void> put(Table table, ByteView key, ByteView record);
  Result<void> put_text(Table table, ByteView key, const std::string& text);

  void did(std::string where, std::string what) {
    outcome_.done.push_back({std::move(where), std::move(what)});
  }

  Store& damaged_;
  Store& backup_;
  Store& target_;
  RepairOutcome outcome_;
  CheckedRun ours_;    // of the damaged store, completed by the backup's
  CheckedRun theirs_;  // of the backup
  std::optional<ShardMap> map_;
  std::uint32_t next_shard_ = 0;       // those below are settled
  ShardContent content_;               // of the shard that is being read
  std::map<Bytes, Bytes> records_[2];  // valid records of the damaged store: history, ledger
};

// Epochs, and settings that only steer, may have changed since the backup was made.
bool is_same_run(ModelConfig left, const ModelConfig& right) {
  left.epochs = right.epochs;
  return left == right;
}

}  // namespace

Result<void> Repairer::put(Table table, ByteView key, ByteView record) {
  WriteBatch batch;
  batch.put(table, key, record);
  return target_.write(std::move(batch), Durability::kLazy);
}

Result<void> Repairer::put_text(Table table, ByteView key, const std::string& text) {
  return put(table, key, seal_record(table, key, as_bytes(text)));
}

Result<void> Repairer::settle_run() {
  Findings ignored;
  ours_ = check_run_table(damaged_, ignored);
  Findings of_backup;
  theirs_ = check_run_table(backup_, of_backup);
  if (of_backup.count() != 0 || !theirs_.model || !theirs_.settings || !theirs_.progress ||
      !theirs_.label_counts) {
    return Error{ErrorCode::kCorrupt, "the backup itself is damaged: use another one"};
  }
  if (ours_.model && !is_same_run(*ours_.model, *theirs_.model)) {
    return Error{ErrorCode::kIdentity, "the backup is of another run: use one of this run"};
  }
  const auto take = [&](auto& own, const auto& other, std::string_view key) {
    if (own) return;
    own = other;
    did("run, " + describe_key(Table::kRun, as_bytes(key)), "taken from the backup");
  };
  take(ours_.model, theirs_.model, kIdentityKey);
  take(ours_.settings, theirs_.settings, kSettingsKey);
  take(ours_.label_counts, theirs_.label_counts, "label_counts");
  map_.emplace(*ours_.model);
  ours_.digests.resize(map_->shard_count());
  if (!ours_.progress) {
    // The last record of the history also tells the checkpoint.
    RoundIndex last = 0;
    std::vector<BatchIndex> rate_cuts;
    const RunPlan plan(*ours_.model);
    Findings findings;
    walk_records(
        damaged_, Table::kHistory, {}, {}, findings, [&](ByteView key, ByteView, ByteView payload) {
          last = std::max(last, decode_history_key(key).value_or(0));
          const auto record = decode_record<RoundRecord>(as_text(payload));
          if (!record || record->checkpoint == 0 || record->checkpoint > plan.round_count()) return;
          while (rate_cuts.size() < std::min(record->rate_cuts, kRateHalvingsMax)) {
            rate_cuts.push_back(plan.round_begin(record->checkpoint - 1));
          }
        });
    last = std::min(last, plan.round_count());
    ours_.progress = ProgressRecord{last, plan.round_begin(last), std::move(rate_cuts)};
    did("run, progress", fmt::format("set to checkpoint {}, the last of the history", last));
  }
  return copy_run_records();
}

Result<void> Repairer::copy_run_records() {
  IdentityRecord identity;
  // The check accepts only this program's record version, whatever the record had.
  const auto stored = backup_.get(Table::kRun, as_bytes(kIdentityKey));
  if (!stored) return stored.error();
  const auto payload = open_record(Table::kRun, as_bytes(kIdentityKey), **stored);
  if (!payload) return payload.error();
  identity = decode_record<IdentityRecord>(as_text(*payload)).value_or(IdentityRecord{});
  identity.model.clear();
  for (auto& [name, text] : model_fields(*ours_.model)) identity.model.emplace(name, text);
  if (auto done = put_text(Table::kRun, as_bytes(kIdentityKey), encode_record(identity)); !done) {
    return done;
  }
  auto done = put_text(Table::kRun, as_bytes(kSettingsKey), encode_settings(*ours_.settings));
  if (!done) return done;
  done = put_text(Table::kRun, as_bytes(kProgressKey), encode_record(*ours_.progress));
  if (!done) return done;
  const std::vector<std::uint32_t>& counts = *ours_.label_counts;
  for (std::size_t first = 0; first < counts.size(); first += kLabelCountsPerChunk) {
    const auto own = std::span(counts).subspan(
        first, std::min<std::size_t>(kLabelCountsPerChunk, counts.size() - first));
    const Bytes key = label_counts_key(static_cast<std::uint32_t>(first / kLabelCountsPerChunk));
    const ByteView bytes{reinterpret_cast<const std::uint8_t*>(own.data()), own.size_bytes()};
    done = put(Table::kRun, key, seal_record(Table::kRun, key, bytes));
    if (!done) return done;
  }
  return {};
}

std::optional<ShardDigest> Repairer::expected_digest(ShardId shard) const {
  const std::optional<ShardDigest>& own = ours_.digests[raw(shard)];
  if (own) return own;
  if (theirs_.progress->checkpoint == ours_.progress->checkpoint)
    return theirs_.digests[raw(shard)];
  return std::nullopt;
}

ShardDigest Repairer::digest_of(ShardId shard, const ShardContent& content) const {
  ShardDigest digest{content.size(), 0};
  for (const auto& [row, stored] : content) {
    digest.sum += row_digest(shard, row, stored.values_and_state);
  }
  return digest;
}

Result<ShardContent> Repairer::read_backup(ShardId shard) {
  RowTables tables(backup_, *map_);
  const Result<ShardRows> rows = tables.read_range(shard, 0, map_->row_count(shard));
  if (!rows) return rows.error();
  const std::size_t width = map_->row_width(shard);
  const std::size_t codes = map_->codes_per_row(shard);
  ShardContent content;
  for (std::size_t i = 0; i < rows->rows.size(); ++i) {
    StoredRow& stored = content[rows->rows[i]];
    stored.values_and_state.resize((width + 1) * sizeof(float));
    std::memcpy(stored.values_and_state.data(), rows->values.data() + i * width,
                width * sizeof(float));
    std::memcpy(stored.values_and_state.data() + width * sizeof(float), &rows->states[i],
                sizeof(float));
    const auto own = std::span(rows->codes).subspan(i * codes, codes);
    stored.codes.assign(own.begin(), own.end());
  }
  return content;
}

Result<void> Repairer::settle_shard(ShardId shard) {
  const ShardContent own = std::exchange(content_, {});
  const std::string where = fmt::format("shard {}", raw(shard));
  const std::optional<ShardDigest> expected = expected_digest(shard);
  if (!expected) {
    outcome_.lost.push_back({where, "its digest is damaged, and the backup's is older"});
    return {};
  }
  if (!ours_.digests[raw(shard)]) did(where, "digest taken from the backup");
  if (digest_of(shard, own) == *expected) return write_shard(shard, own);
  const Result<ShardContent> other = read_backup(shard);
  if (!other) return other.error();
  // Three candidates: own rows and the backup's for the missing ones; the backup's rows and own
  // rows that it lacks; the backup's rows alone.
  ShardContent filled = own;
  filled.insert(other->begin(), other->end());
  ShardContent replaced = *other;
  replaced.insert(own.begin(), own.end());
  const ShardContent& theirs = *other;
  for (const ShardContent* candidate :
       {&std::as_const(filled), &std::as_const(replaced), &theirs}) {
    if (digest_of(shard, *candidate) != *expected) continue;
    std::uint64_t taken = 0;
    for (const auto& [row, stored] : *candidate) {
      const auto before = own.find(row);
      if (before != own.end() && before->second.values_and_state == stored.values_and_state) {
        continue;
      }
      ++taken;
    }
    did(where, fmt::format("{} of {} rows taken from the backup", taken, candidate->size()));
    return write_shard(shard, *candidate);
  }
  outcome_.lost.push_back(
      {where, fmt::format("{} of its {} stored rows are sound, and the backup has other rows than "
                          "the shard's digest needs",
                          own.size(), expected->rows)});
  return {};
}

Result<void> Repairer::write_shard(ShardId shard, const ShardContent& content) {
  RowTables tables(target_, *map_);
  std::vector<float> values(map_->row_width(shard));
  auto writer = target_.begin_sorted(content.size() * row_bytes(*map_, shard));
  if (!writer) return writer.error();
  for (const auto& [row, stored] : content) {
    float state = 0;
    std::memcpy(values.data(), stored.values_and_state.data(), values.size() * sizeof(float));
    std::memcpy(&state, stored.values_and_state.data() + values.size() * sizeof(float),
                sizeof state);
    auto put = tables.put(**writer, {shard, row}, values, state, stored.codes);
    if (!put) return put.error();
  }
  if (const ShardDigest digest = digest_of(shard, content); digest != ShardDigest{}) {
    const Bytes key = shard_digest_key(shard);
    auto put = (*writer)->put(Table::kRun, key,
                              seal_record(Table::kRun, key, as_bytes(encode_record(digest))));
    if (!put) return put;
  }
  return (*writer)->finish();
}

Result<void> Repairer::settle_shards_before(std::uint32_t shard) {
  for (; next_shard_ < shard; ++next_shard_) {
    if (auto settled = settle_shard(ShardId{next_shard_}); !settled) return settled;
  }
  return {};
}

Result<void> Repairer::settle_history() {
  std::map<Bytes, Bytes>& own = records_[0];
  const RunPlan plan(*ours_.model);
  for (RoundIndex checkpoint = 1; checkpoint <= ours_.progress->checkpoint; ++checkpoint) {
    const HistoryKeyBytes key = encode_history_key(checkpoint);
    const auto found = own.find(Bytes(key.begin(), key.end()));
    if (found != own.end()) {
      if (auto done = put(Table::kHistory, key, found->second); !done) return done;
      continue;
    }
    const auto other = backup_.get(Table::kHistory, key);
    if (!other) return other.error();
    const std::string where = describe_key(Table::kHistory, key);
    Result<void> done;
    if (other->has_value()) {
      did("history, " + where, "taken from the backup");
      done = put(Table::kHistory, key, **other);
    } else {
      RoundRecord blank;
      blank.checkpoint = checkpoint;
      blank.batches = plan.round_begin(checkpoint);
      blank.epoch = plan.epochs_done(checkpoint);
      did("history, " + where, "its metrics are lost: replaced by an empty record");
      done = put_text(Table::kHistory, key, encode_record(blank));
    }
    if (!done) return done;
  }
  return {};
}

Result<void> Repairer::settle_ledger() {
  std::map<Bytes, Bytes>& own = records_[1];
  Findings ignored;
  std::map<Bytes, Bytes> other;
  walk_records(backup_, Table::kLedger, {}, {}, ignored,
               [&](ByteView key, ByteView record, ByteView) {
                 other.emplace(Bytes(key.begin(), key.end()), Bytes(record.begin(), record.end()));
               });
  for (const auto& [key, record] : own) {
    if (auto done = put(Table::kLedger, key, record); !done) return done;
  }
  for (const auto& [key, record] : other) {
    if (own.contains(key)) continue;
    const std::string where = describe_key(Table::kLedger, key);
    Result<void> done;
    if (std::ranges::equal(key, lease_epoch_key())) {
      const auto payload = open_record(Table::kLedger, key, record);
      if (!payload) return payload.error();
      auto epochs = decode_record<LeaseEpochRecord>(as_text(*payload)).value_or(LeaseEpochRecord{});
      epochs.next += kEpochMargin;
      did("ledger, " + where, "set well beyond the backup's, so that none is used twice");
      done = put_text(Table::kLedger, key, encode_record(epochs));
    } else {
      did("ledger, " + where, "taken from the backup, as it was then");
      done = put(Table::kLedger, key, record);
    }
    if (!done) return done;
  }
  return {};
}

Result<RepairOutcome> Repairer::run() {
  if (auto settled = settle_run(); !settled) return settled.error();
  Result<void> failed;
  CheckHooks hooks;
  hooks.on_row = [&](const CheckedRow& row) {
    if (failed) failed = settle_shards_before(raw(row.shard));
    content_[row.row] = {Bytes(row.values_and_state.begin(), row.values_and_state.end()),
                         std::vector<std::uint32_t>(row.codes.begin(), row.codes.end())};
  };
  hooks.on_record = [&](Table table, ByteView key, ByteView record) {
    records_[table == Table::kHistory ? 0 : 1].emplace(Bytes(key.begin(), key.end()),
                                                       Bytes(record.begin(), record.end()));
  };
  Findings findings;
  check_stored_rows(damaged_, ours_, findings, hooks);
  const bool had_row_findings = findings.count() != 0;
  if (failed) failed = settle_shards_before(map_->shard_count());
  if (!failed) return failed.error();
  check_history(damaged_, ours_, findings, hooks);
  check_ledger(damaged_, ours_, findings, hooks);
  if (auto settled = settle_history(); !settled) return settled.error();
  if (auto settled = settle_ledger(); !settled) return settled.error();
  if (had_row_findings && outcome_.lost.empty()) {
    did("codes", "every table entry computed again from its row's weights");
  }
  did("staged", "dropped: the open round is trained again, to the same bits");
  // Makes everything written before durable.
  WriteBatch last;
  const std::string progress = encode_record(*ours_.progress);
  last.put(Table::kRun, as_bytes(kProgressKey),
           seal_record(Table::kRun, as_bytes(kProgressKey), as_bytes(progress)));
  if (auto written = target_.write(std::move(last), Durability::kSync); !written) {
    return written.error();
  }
  return std::move(outcome_);
}

Result<RepairOutcome> repair_store(Store& damaged, Store& backup, Store& target) {
  return Repairer(damaged, backup, target).run();
}

}  // namespace gleaner
