// The small records of a run: history, receipts, accounts, lease epochs.

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

}  // namespace gleaner
