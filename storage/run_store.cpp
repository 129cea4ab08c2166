// The state of a run between two checkpoints: what it is, and the commits that are staged for the
// next one.
#include "storage/run_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/model/run_plan.hpp"
#include "common/model/shard_rows.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {
namespace {

// Without its figures when they were measured on another test file than `test`.
Result<RoundRecord> read_round(ByteView key, ByteView record, std::uint64_t test) {
  const Result<ByteView> payload = open_record(Table::kHistory, key, record);
  if (!payload) return payload.error();
  auto decoded = decode_record<RoundRecord>(as_text(*payload));
  if (!decoded || decode_history_key(key) != decoded->checkpoint) {
    return corrupt_record(Table::kHistory, key, "it is not a history record of its key");
  }
  if (decoded->test != 0 && test != 0 && decoded->test != test) {
    decoded->evaluated = 0;
    decoded->evaluated_all = false;
    decoded->precision = {};
  }
  return *decoded;
}

Result<AccountRecord> read_account(ByteView key_bytes, ByteView record) {
  const Result<ByteView> payload = open_record(Table::kLedger, key_bytes, record);
  if (!payload) return payload.error();
  std::optional<AccountRecord> account = decode_record<AccountRecord>(as_text(*payload));
  const std::optional<KeyId> key = decode_account_key(key_bytes);
  if (!account || !key) {
    return corrupt_record(Table::kLedger, key_bytes, "it is not an account");
  }
  account->identity = *key;
  return std::move(*account);
}

}  // namespace

RunStore::RunStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RunStore::~RunStore() = default;

const RunIdentity& RunStore::identity() const {
  return impl_->identity;
}

const ShardMap& RunStore::shard_map() const {
  return impl_->map;
}

RoundIndex RunStore::checkpoint() const {
  return impl_->checkpoint;
}

const std::vector<BatchIndex>& RunStore::rate_cuts() const {
  return impl_->rate_cuts;
}

const std::vector<std::uint32_t>& RunStore::label_counts() const {
  return impl_->label_counts;
}

std::vector<std::uint32_t> RunStore::label_counts(ShardId shard) const {
  std::vector<std::uint32_t> counts;
  if (!impl_->map.is_output(shard)) return counts;
  const NeuronRange neurons = impl_->map.neurons(shard);
  counts.reserve(neurons.size());
  for (std::uint32_t neuron = neurons.begin; neuron < neurons.end; ++neuron) {
    counts.push_back(impl_->label_counts[impl_->map.label_of_neuron(neuron)]);
  }
  return counts;
}

Result<void> RunStore::stage(RoundIndex round, ShardId shard, std::uint32_t part,
                             std::uint32_t parts, const SparseUpdate& update) {
  if (round < impl_->checkpoint) return {};
  return impl_->staged.add(round, shard, part, parts, update);
}

Result<bool> RunStore::has_rows(ShardId shard, std::span<const std::uint32_t> rows) {
  const Result<SelectedRows> selected = impl_->rows.read_selected(shard, rows);
  if (!selected) return selected.error();
  return std::ranges::count(selected->is_stored, 0) == 0;
}

Result<void> RunStore::drop_staged(RoundIndex round, ShardId shard) {
  return impl_->staged.erase_shard(std::max(round, impl_->checkpoint), shard);
}

Result<bool> RunStore::is_staged(RoundIndex round, ShardId shard) {
  if (round < impl_->checkpoint) return true;
  return impl_->staged.is_whole(round, shard);
}

Result<void> RunStore::settle(const SettledRound& settled) {
  if (settled.round < impl_->checkpoint) return {};
  return impl_->staged.settle(settled);
}

Result<std::vector<SettledRound>> RunStore::keep_settled(
    const std::function<bool(RoundIndex checkpoint)>& ends,
    const std::function<void(const Error&)>& on_damage) {
  impl_->open_fold.reset();
  // A decided fold that cannot be resumed: other commits may be staged for its round, and they
  // count only when the fold is decided again.
  WriteBatch batch;
  batch.erase(Table::kRun, as_bytes(kFoldKey));
  auto written = impl_->store->write(std::move(batch), Durability::kLazy);
  if (!written) return written.error();
  const RoundIndex end = RunPlan(impl_->identity.model).round_count();
  return impl_->staged.keep_settled(impl_->checkpoint, end, ends, on_damage);
}

Result<void> RunStore::discard_staged() {
  return impl_->staged.erase_all();
}

Result<void> RunStore::cut_rates() {
  if (auto discarded = discard_staged(); !discarded) return discarded;
  impl_->open_fold.reset();
  const BatchIndex next = RunPlan(impl_->identity.model).round_begin(impl_->checkpoint);
  std::vector<BatchIndex> cuts = impl_->rate_cuts;
  cuts.push_back(next);
  WriteBatch batch;
  put_text(batch, Table::kRun, as_bytes(kProgressKey),
           encode_record(ProgressRecord{impl_->checkpoint, next, cuts}));
  batch.erase(Table::kRun, as_bytes(kFoldKey));
  auto written = impl_->store->write(std::move(batch), Durability::kSync);
  if (written) impl_->rate_cuts = std::move(cuts);
  return written;
}

Result<std::string> RunStore::snapshot() {
  return impl_->store->snapshot();
}

Result<std::vector<TableSpace>> RunStore::space() {
  return impl_->store->space();
}

// The small records of a run: history, receipts, accounts, lease epochs.
Result<void> RunStore::put_history(const RoundRecord& evaluated) {
  RoundRecord record = evaluated;
  if (record.evaluated > 0) record.test = test_fingerprint(impl_->identity);
  WriteBatch batch;
  put_text(batch, Table::kHistory, encode_history_key(record.checkpoint), encode_record(record));
  return impl_->store->write(std::move(batch), Durability::kSync);
}

Result<std::vector<RoundRecord>> RunStore::history() {
  std::vector<RoundRecord> records;
  Result<void> outcome;
  Result<void> scanned =
      impl_->store->scan(Table::kHistory, {}, {}, [&](ByteView key, ByteView record) {
        const Result<RoundRecord> read = read_round(key, record, test_fingerprint(identity()));
        if (read) {
          records.push_back(*read);
        } else {
          outcome = read.error();
        }
        return read.ok();
      });
  if (!scanned) return scanned.error();
  if (!outcome) return outcome.error();
  return records;
}

Result<std::optional<RoundRecord>> RunStore::history_at(RoundIndex checkpoint) {
  const HistoryKeyBytes key = encode_history_key(checkpoint);
  const auto record = impl_->store->get(Table::kHistory, key);
  if (!record) return record.error();
  if (!record->has_value()) return std::optional<RoundRecord>();
  const Result<RoundRecord> read = read_round(key, **record, test_fingerprint(identity()));
  if (!read) return read.error();
  return std::optional(*read);
}

Result<void> RunStore::put_accounts(const std::vector<AccountRecord>& accounts) {
  WriteBatch batch;
  for (const AccountRecord& account : accounts) {
    put_text(batch, Table::kLedger, encode_account_key(account.identity), encode_record(account));
  }
  return impl_->store->write(std::move(batch), Durability::kLazy);
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

Result<AccountRecord> RunStore::account(const KeyId& identity) {
  const AccountKeyBytes key = encode_account_key(identity);
  const auto record = impl_->store->get(Table::kLedger, key);
  if (!record) return record.error();
  if (*record) return read_account(key, **record);
  AccountRecord none;
  none.identity = identity;
  return none;
}

Result<std::vector<AccountRecord>> RunStore::accounts() {
  std::vector<AccountRecord> accounts;
  Result<void> outcome;
  const auto visit = [&](ByteView key, ByteView record) {
    Result<AccountRecord> account = read_account(key, record);
    if (account) {
      accounts.push_back(std::move(*account));
    } else {
      outcome = account.error();
    }
    return static_cast<bool>(account);
  };
  Result<void> scanned =
      impl_->store->scan(Table::kLedger, account_keys_begin(), account_keys_end(), visit);
  if (!scanned) return scanned.error();
  if (!outcome) return outcome.error();
  return accounts;
}

Result<LeaseEpoch> RunStore::reserve_lease_epochs(std::uint64_t count) {
  const Result<std::optional<std::string>> text =
      get_text(*impl_->store, Table::kLedger, lease_epoch_key());
  if (!text) return text.error();
  std::optional<LeaseEpochRecord> record = LeaseEpochRecord{};
  if (text->has_value()) record = decode_record<LeaseEpochRecord>(**text);
  if (!record) {
    return corrupt_record(Table::kLedger, lease_epoch_key(), "it is not the expected record");
  }
  const LeaseEpoch first{record->next};
  record->next += count;
  WriteBatch batch;
  put_text(batch, Table::kLedger, lease_epoch_key(), encode_record(*record));
  if (auto written = impl_->store->write(std::move(batch), Durability::kSync); !written) {
    return written.error();
  }
  return first;
}

// The rows of a shard as they are read: the stored ones, with the staged commits on top that come
// before the checkpoint that is asked for.
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
  // A wide row's features never change, so its codes are as in the checkpoint.
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

}  // namespace gleaner
