#include "storage/run_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/model/run_plan.hpp"
#include "storage/identity.hpp"
#include "storage/keys.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {

void put_text(WriteBatch& batch, Table table, ByteView key, const std::string& text) {
  batch.put(table, key, seal_record(table, key, as_bytes(text)));
}

Result<void> put_text(SortedWriter& writer, Table table, ByteView key, const std::string& text) {
  return writer.put(table, key, seal_record(table, key, as_bytes(text)));
}

Result<std::optional<std::string>> get_text(Store& store, Table table, ByteView key) {
  const Result<std::optional<Bytes>> record = store.get(table, key);
  if (!record) return record.error();
  if (!record->has_value()) return std::optional<std::string>();
  const Result<ByteView> payload = open_record(table, key, **record);
  if (!payload) return payload.error();
  return std::optional<std::string>(as_text(*payload));
}

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
           encode_progress({impl_->checkpoint, next, cuts}));
  batch.erase(Table::kRun, as_bytes(kFoldKey));
  auto written = impl_->store->write(std::move(batch), Durability::kSync);
  if (written) impl_->rate_cuts = std::move(cuts);
  return written;
}

Result<void> RunStore::put_history(const HistoryRecord& evaluated) {
  HistoryRecord record = evaluated;
  if (record.evaluated > 0) record.test = test_fingerprint(impl_->identity);
  WriteBatch batch;
  put_text(batch, Table::kHistory, encode_history_key(record.checkpoint), encode_history(record));
  return impl_->store->write(std::move(batch), Durability::kSync);
}

Result<std::vector<HistoryRecord>> RunStore::history() {
  std::vector<HistoryRecord> records;
  const std::uint64_t test = test_fingerprint(impl_->identity);
  Result<void> outcome;
  Result<void> scanned =
      impl_->store->scan(Table::kHistory, {}, {}, [&](ByteView key, ByteView record) {
        const Result<ByteView> payload = open_record(Table::kHistory, key, record);
        if (!payload) {
          outcome = payload.error();
          return false;
        }
        const auto decoded = decode_history(as_text(*payload));
        if (!decoded || decode_history_key(key) != decoded->checkpoint) {
          outcome = corrupt_record(Table::kHistory, key, "it is not a history record of its key");
          return false;
        }
        HistoryRecord& added = records.emplace_back(*decoded);
        if (added.test != 0 && test != 0 && added.test != test) {
          added.evaluated = 0;
          added.evaluated_all = false;
          added.precision = {};
        }
        return true;
      });
  if (!scanned) return scanned.error();
  if (!outcome) return outcome.error();
  return records;
}

Result<void> RunStore::put_accounts(const std::vector<VolunteerAccount>& accounts) {
  WriteBatch batch;
  for (const VolunteerAccount& account : accounts) {
    put_text(batch, Table::kLedger,
             encode_account_key({account.identity_high, account.identity_low}),
             encode_account(account));
  }
  return impl_->store->write(std::move(batch), Durability::kLazy);
}

namespace {

Result<VolunteerAccount> read_account(ByteView key_bytes, ByteView record) {
  const Result<ByteView> payload = open_record(Table::kLedger, key_bytes, record);
  if (!payload) return payload.error();
  std::optional<VolunteerAccount> account = decode_account(as_text(*payload));
  const std::optional<AccountKey> key = decode_account_key(key_bytes);
  if (!account || !key) {
    return corrupt_record(Table::kLedger, key_bytes, "it is not an account");
  }
  account->identity_high = key->identity_high;
  account->identity_low = key->identity_low;
  return std::move(*account);
}

}  // namespace

Result<VolunteerAccount> RunStore::account(std::uint64_t identity_high,
                                           std::uint64_t identity_low) {
  const AccountKeyBytes key = encode_account_key({identity_high, identity_low});
  const auto record = impl_->store->get(Table::kLedger, key);
  if (!record) return record.error();
  if (*record) return read_account(key, **record);
  VolunteerAccount none;
  none.identity_high = identity_high;
  none.identity_low = identity_low;
  return none;
}

Result<std::vector<VolunteerAccount>> RunStore::accounts() {
  std::vector<VolunteerAccount> accounts;
  Result<void> outcome;
  const auto visit = [&](ByteView key, ByteView record) {
    Result<VolunteerAccount> account = read_account(key, record);
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
  if (text->has_value()) record = decode_lease_epoch(**text);
  if (!record) {
    return corrupt_record(Table::kLedger, lease_epoch_key(), "it is not the expected record");
  }
  const LeaseEpoch first{record->next};
  record->next += count;
  WriteBatch batch;
  put_text(batch, Table::kLedger, lease_epoch_key(), encode_lease_epoch(*record));
  if (auto written = impl_->store->write(std::move(batch), Durability::kSync); !written) {
    return written.error();
  }
  return first;
}

Result<std::string> RunStore::snapshot() {
  return impl_->store->snapshot();
}

Result<std::vector<TableSpace>> RunStore::space() {
  return impl_->store->space();
}

}  // namespace gleaner
