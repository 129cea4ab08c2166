#include "storage/run_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "common/access/sha256.hpp"
#include "common/bytes.hpp"
#include "common/model/run_plan.hpp"
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
  // A fold that was decided and cannot be resumed: other commits may come for its round, which
  // count only when it is decided again.
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

Result<void> RunStore::put_history(const RoundRecord& evaluated) {
  RoundRecord record = evaluated;
  if (record.evaluated > 0) record.test = test_fingerprint(impl_->identity);
  WriteBatch batch;
  put_text(batch, Table::kHistory, encode_history_key(record.checkpoint), encode_record(record));
  return impl_->store->write(std::move(batch), Durability::kSync);
}

Result<std::vector<RoundRecord>> RunStore::history() {
  std::vector<RoundRecord> records;
  const std::uint64_t test = test_fingerprint(impl_->identity);
  Result<void> outcome;
  Result<void> scanned =
      impl_->store->scan(Table::kHistory, {}, {}, [&](ByteView key, ByteView record) {
        const Result<ByteView> payload = open_record(Table::kHistory, key, record);
        if (!payload) {
          outcome = payload.error();
          return false;
        }
        const auto decoded = decode_record<RoundRecord>(as_text(*payload));
        if (!decoded || decode_history_key(key) != decoded->checkpoint) {
          outcome = corrupt_record(Table::kHistory, key, "it is not a history record of its key");
          return false;
        }
        RoundRecord& added = records.emplace_back(*decoded);
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

Result<void> RunStore::put_accounts(const std::vector<AccountRecord>& accounts) {
  WriteBatch batch;
  for (const AccountRecord& account : accounts) {
    put_text(batch, Table::kLedger, encode_account_key(account.identity), encode_record(account));
  }
  return impl_->store->write(std::move(batch), Durability::kLazy);
}

namespace {

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

Result<std::string> RunStore::snapshot() {
  return impl_->store->snapshot();
}

Result<std::vector<TableSpace>> RunStore::space() {
  return impl_->store->space();
}

namespace {

constexpr const char* kTestNameKey = "test.file";
constexpr const char* kTestFingerprintKey = "test.fingerprint";

// The word after the last dot, which is the field's name in a settings key.
std::string_view last_word(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

// The key under which people know the field, or the field's own name.
std::string key_of_field(const std::string& field, const RunIdentity& identity) {
  for (const auto& [key, value] : identity.settings) {
    if (last_word(key) == field) return key;
  }
  return field;
}

std::string difference(const std::string& key, const std::string& here,
                       const std::string& in_store) {
  return fmt::format("{} is {} here and {} in the store", key, here, in_store);
}

std::string test_name(const RunIdentity& identity) {
  const auto known = identity.settings.find(kTestNameKey);
  return known == identity.settings.end() ? "another file" : known->second;
}

}  // namespace

std::string run_name(const RunIdentity& identity) {
  std::string text;
  for (const auto& [name, value] : model_fields(identity.model)) {
    if (name != "epochs") text += fmt::format("{}={}\n", name, value);
  }
  Sha256 sha;
  sha.update(as_bytes(text));
  return sha.finish().substr(0, 16);
}

Result<std::string> model_name(RunStore& run) {
  const auto digests = run.shard_digests();
  if (!digests) return digests.error();
  return fmt::format("{}-{}-{:016x}", run_name(run.identity()), run.checkpoint(),
                     rows_digest(*digests));
}

void set_test_file(RunIdentity& identity, const std::string& name, std::uint64_t fingerprint) {
  identity.settings[kTestNameKey] = name;
  identity.settings[kTestFingerprintKey] = fmt::format("{:016x}", fingerprint);
}

std::uint64_t test_fingerprint(const RunIdentity& identity) {
  const auto known = identity.settings.find(kTestFingerprintKey);
  std::uint64_t fingerprint = 0;
  if (known == identity.settings.end()) return fingerprint;
  const std::string& text = known->second;
  std::from_chars(text.data(), text.data() + text.size(), fingerprint, 16);
  return fingerprint;
}

Result<void> check_test_file(const RunIdentity& wanted, const RunIdentity& stored) {
  const std::uint64_t here = test_fingerprint(wanted);
  const std::uint64_t there = test_fingerprint(stored);
  if (here == 0 || there == 0 || here == there || wanted.begins_new_test) return {};
  return Error{
      ErrorCode::kIdentity,
      fmt::format("the figures in the store were measured on {} (fingerprint {:016x}), and "
                  "{} (fingerprint {:016x}) is another test file: name the first one as "
                  "--test, or give --new-test so that figures, the best checkpoint and "
                  "--patience begin again with the second",
                  test_name(stored), there, test_name(wanted), here)};
}

std::vector<std::string> identity_differences(const RunIdentity& wanted,
                                              const RunIdentity& stored) {
  std::vector<std::string> clauses;
  for (const FieldDifference& field : model_differences(wanted.model, stored.model)) {
    const std::string key = key_of_field(field.name, wanted);
    if (field.name != "epochs") {
      clauses.push_back(difference(key, field.left, field.right));
    } else if (wanted.model.epochs < stored.model.epochs) {
      clauses.push_back(difference(key, field.left, field.right) + " (it can only grow)");
    }
  }
  std::set<std::string, std::less<>> known_fields;
  for_each_model_field([&](const auto& field) { known_fields.insert(field.name); });
  for (const auto& [key, value] : wanted.settings) {
    const auto other = stored.settings.find(key);
    if (other == stored.settings.end() || other->second == value) continue;
    // Settings of the model were compared above, by what they mean; check_test_file() has the rest.
    if (known_fields.contains(last_word(key)) || key.starts_with("test.")) continue;
    clauses.push_back(difference(key, value, other->second));
  }
  return clauses;
}

// The digest of a checkpoint. README.md specifies the bytes it is taken over; they are the logical
// content, so that a change of the stored format does not change a digest.

namespace {

// Which rows of the output shards are stored, to hold the table entries against.
class RowPresence {
 public:
  explicit RowPresence(const ShardMap& map) {
    for (std::uint32_t shard = 0; shard < map.shard_count(); ++shard) {
      const bool has_codes = map.codes_per_row(ShardId{shard}) != 0;
      is_stored_.emplace_back(has_codes ? map.row_count(ShardId{shard}) : 0);
    }
  }

  void add(RowKey key) {
    std::vector<bool>& shard = is_stored_[raw(key.shard)];
    if (!shard.empty()) shard[key.row] = true;
  }

  // False when the row is not there, or was removed before.
  bool remove(RowKey key) {
    std::vector<bool>& shard = is_stored_[raw(key.shard)];
    if (shard.empty() || !shard[key.row]) return false;
    shard[key.row] = false;
    return true;
  }

  // A row that was added and not removed.
  [[nodiscard]] std::optional<RowKey> any() const {
    for (std::uint32_t shard = 0; shard < is_stored_.size(); ++shard) {
      const auto row = std::ranges::find(is_stored_[shard], true);
      if (row == is_stored_[shard].end()) continue;
      return RowKey{ShardId{shard}, static_cast<std::uint32_t>(row - is_stored_[shard].begin())};
    }
    return std::nullopt;
  }

 private:
  std::vector<std::vector<bool>> is_stored_;
};

std::string describe_checkpoint(const ModelConfig& model, RoundIndex checkpoint,
                                const std::vector<BatchIndex>& rate_cuts) {
  std::string text = "gleaner checkpoint 1\n";
  for (const auto& [name, value] : model_fields(model)) {
    // How long the run is meant to be has no part in what it is by now.
    if (name != "epochs") text += fmt::format("{}={}\n", name, value);
  }
  const BatchIndex batches = RunPlan(model).round_begin(checkpoint);
  text += fmt::format("checkpoint={}\nbatches={}\n", checkpoint, batches);
  for (const BatchIndex cut : rate_cuts) {
    if (cut < batches) text += fmt::format("rate_cut={}\n", cut);
  }
  return text;
}

}  // namespace

Result<std::string> RunStore::checkpoint_digest() {
  Impl& run = *impl_;
  Sha256 sha;
  sha.update(as_bytes(describe_checkpoint(run.identity.model, run.checkpoint, run.rate_cuts)));

  std::vector<ShardDigest> seen(run.map.shard_count());
  RowPresence presence(run.map);
  sha.update(as_bytes("rows\n"));
  auto rows = run.rows.visit_rows([&](const RowTables::StoredRow& row) {
    sha.update(row.key_bytes);
    sha.update(row.values);
    ShardDigest& digest = seen[raw(row.key.shard)];
    ++digest.rows;
    digest.sum += row_digest(row.key.shard, row.key.row, row.values);
    presence.add(row.key);
    return Result<void>();
  });
  if (!rows) return rows.error();
  for (std::uint32_t shard = 0; shard < seen.size(); ++shard) {
    const Result<ShardDigest> expected = run.read_digest(ShardId{shard});
    if (!expected) return expected.error();
    if (*expected == seen[shard]) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("shard {} is damaged: it should have {} stored rows and has {}, or "
                             "some that are not the last folded ones; restore the store from a "
                             "copy or train again into an empty folder",
                             shard, expected->rows, seen[shard].rows)};
  }

  sha.update(as_bytes("codes\n"));
  auto codes = run.rows.visit_codes([&](RowKey key, std::span<const std::uint32_t> row_codes) {
    const RowKeyBytes key_bytes = encode_row_key(key);
    if (!presence.remove(key)) {
      return Result<void>(corrupt_record(Table::kCodes, key_bytes, "the row itself is missing"));
    }
    sha.update(key_bytes);
    sha.update({reinterpret_cast<const std::uint8_t*>(row_codes.data()), row_codes.size_bytes()});
    return Result<void>();
  });
  if (!codes) return codes.error();
  if (const std::optional<RowKey> missing = presence.any()) {
    return corrupt_record(Table::kCodes, encode_row_key(*missing), "it is missing");
  }
  return sha.finish();
}

}  // namespace gleaner
