#include "storage/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace gleaner {
namespace {

constexpr std::string_view kLabelCountsPrefix = "label_counts/";
constexpr std::string_view kShardDigestPrefix = "shard/";
constexpr std::uint8_t kLeaseEpochKind = 1;
constexpr std::uint8_t kAccountKind = 2;
constexpr std::uint8_t kReceiptsKind = 3;
constexpr std::array<std::uint8_t, 1> kLeaseEpochKey = {kLeaseEpochKind};
constexpr std::array<std::uint8_t, 1> kAccountsBegin = {kAccountKind};
constexpr std::array<std::uint8_t, 1> kAccountsEnd = {kAccountKind + 1};

template <typename T>
void store_be(T value, std::uint8_t* target) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    target[i] = static_cast<std::uint8_t>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

template <typename T>
T load_be(const std::uint8_t* source) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value << 8) | source[i];
  return value;
}

Bytes numbered_key(std::string_view prefix, std::uint32_t number) {
  Bytes key(prefix.begin(), prefix.end());
  key.resize(prefix.size() + sizeof number);
  store_be(number, key.data() + prefix.size());
  return key;
}

// The number after `prefix`, if the key has this form.
std::optional<std::uint32_t> number_after(std::string_view prefix, ByteView key) {
  if (key.size() != prefix.size() + sizeof(std::uint32_t)) return std::nullopt;
  if (!as_text(key).starts_with(prefix)) return std::nullopt;
  return load_be<std::uint32_t>(key.data() + prefix.size());
}

std::string hexadecimal(ByteView bytes) {
  std::string text = "0x";
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string describe_run_key(ByteView key) {
  if (const auto chunk = number_after(kLabelCountsPrefix, key)) {
    const std::uint64_t first = std::uint64_t{*chunk} * kLabelCountsPerChunk;
    return fmt::format("counts of labels {} to {}", first, first + kLabelCountsPerChunk - 1);
  }
  if (const auto shard = number_after(kShardDigestPrefix, key)) {
    return fmt::format("digest of shard {}", *shard);
  }
  const std::string_view text = as_text(key);
  const bool is_word =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > 32; });
  return is_word ? std::string(text) : hexadecimal(key);
}

std::string describe_ledger_key(ByteView key) {
  if (const auto account = decode_account_key(key)) {
    return fmt::format("account of volunteer {:016x}{:016x}", account->high, account->low);
  }
  if (const auto round = decode_receipts_key(key)) {
    return fmt::format("receipts of round {}", *round);
  }
  if (std::ranges::equal(key, lease_epoch_key())) return "lease epochs";
  return hexadecimal(key);
}

}  // namespace

RowKeyBytes encode_row_key(RowKey key) {
  RowKeyBytes bytes{};
  store_be(raw(key.shard), bytes.data());
  store_be(key.row, bytes.data() + 4);
  return bytes;
}

std::optional<RowKey> decode_row_key(ByteView bytes) {
  if (bytes.size() != RowKeyBytes{}.size()) return std::nullopt;
  return RowKey{ShardId{load_be<std::uint32_t>(bytes.data())},
                load_be<std::uint32_t>(bytes.data() + 4)};
}

Bytes row_keys_end(ShardId shard) {
  if (raw(shard) == UINT32_MAX) return {};
  const RowKeyBytes end = encode_row_key({ShardId{raw(shard) + 1}, 0});
  return {end.begin(), end.end()};
}

StagedKeyBytes encode_staged_key(StagedKey key) {
  StagedKeyBytes bytes{};
  store_be(key.round, bytes.data());
  store_be(raw(key.shard), bytes.data() + 4);
  store_be(key.part, bytes.data() + 8);
  return bytes;
}

std::optional<StagedKey> decode_staged_key(ByteView bytes) {
  if (bytes.size() != StagedKeyBytes{}.size()) return std::nullopt;
  return StagedKey{load_be<std::uint32_t>(bytes.data()),
                   ShardId{load_be<std::uint32_t>(bytes.data() + 4)},
                   load_be<std::uint32_t>(bytes.data() + 8)};
}

HistoryKeyBytes encode_history_key(RoundIndex checkpoint) {
  HistoryKeyBytes bytes{};
  store_be(checkpoint, bytes.data());
  return bytes;
}

std::optional<RoundIndex> decode_history_key(ByteView bytes) {
  if (bytes.size() != HistoryKeyBytes{}.size()) return std::nullopt;
  return load_be<RoundIndex>(bytes.data());
}

AccountKeyBytes encode_account_key(const KeyId& identity) {
  AccountKeyBytes bytes{};
  bytes[0] = kAccountKind;
  store_be(identity.high, bytes.data() + 1);
  store_be(identity.low, bytes.data() + 9);
  return bytes;
}

std::optional<KeyId> decode_account_key(ByteView bytes) {
  if (bytes.size() != AccountKeyBytes{}.size() || bytes[0] != kAccountKind) return std::nullopt;
  return KeyId{load_be<std::uint64_t>(bytes.data() + 1), load_be<std::uint64_t>(bytes.data() + 9)};
}

ByteView account_keys_begin() {
  return kAccountsBegin;
}

ByteView account_keys_end() {
  return kAccountsEnd;
}

ByteView lease_epoch_key() {
  return kLeaseEpochKey;
}

ReceiptsKeyBytes encode_receipts_key(RoundIndex round) {
  ReceiptsKeyBytes bytes{};
  bytes[0] = kReceiptsKind;
  store_be(round, bytes.data() + 1);
  return bytes;
}

std::optional<RoundIndex> decode_receipts_key(ByteView bytes) {
  if (bytes.size() != ReceiptsKeyBytes{}.size() || bytes[0] != kReceiptsKind) return std::nullopt;
  return load_be<RoundIndex>(bytes.data() + 1);
}

Bytes label_counts_key(std::uint32_t chunk) {
  return numbered_key(kLabelCountsPrefix, chunk);
}

Bytes shard_digest_key(ShardId shard) {
  return numbered_key(kShardDigestPrefix, raw(shard));
}

std::string describe_key(Table table, ByteView key) {
  switch (table) {
    case Table::kRun:
      return describe_run_key(key);
    case Table::kRows:
    case Table::kCodes:
      if (const auto row = decode_row_key(key)) {
        return fmt::format("shard {}, row {}", raw(row->shard), row->row);
      }
      break;
    case Table::kStaged:
      if (const auto staged = decode_staged_key(key)) {
        if (staged->part == kSettledPart) {
          return fmt::format("round {}, shard {}, settled", staged->round, raw(staged->shard));
        }
        return fmt::format("round {}, shard {}, part {}", staged->round, raw(staged->shard),
                           staged->part);
      }
      break;
    case Table::kLedger:
      return describe_ledger_key(key);
    case Table::kHistory:
      if (const auto checkpoint = decode_history_key(key)) {
        return fmt::format("checkpoint {}", *checkpoint);
      }
      break;
  }
  return hexadecimal(key);
}

}  // namespace gleaner
