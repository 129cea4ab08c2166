// Keys of every table: big-endian numbers, so that the store's byte order is the numeric order.
// Decoding refuses keys that encoding cannot have written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/access/standing.hpp"
#include "common/bytes.hpp"
#include "common/ids.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

// Key in tables kRows and kCodes.
struct RowKey {
  ShardId shard{};
  std::uint32_t row = 0;
  friend bool operator==(const RowKey&, const RowKey&) = default;
};

using RowKeyBytes = std::array<std::uint8_t, 8>;
RowKeyBytes encode_row_key(RowKey key);
std::optional<RowKey> decode_row_key(ByteView bytes);
// The first key after all rows of the shard; empty for the last possible shard.
Bytes row_keys_end(ShardId shard);

// kStaged: a part of a commit. The part number kSettledPart follows all parts and marks the record
// that the commit counts.
inline constexpr std::uint32_t kSettledPart = UINT32_MAX;

struct StagedKey {
  RoundIndex round = 0;
  ShardId shard{};
  std::uint32_t part = 0;
  friend bool operator==(const StagedKey&, const StagedKey&) = default;
};

using StagedKeyBytes = std::array<std::uint8_t, 12>;
StagedKeyBytes encode_staged_key(StagedKey key);
std::optional<StagedKey> decode_staged_key(ByteView bytes);

// kHistory: the number of folded rounds.
using HistoryKeyBytes = std::array<std::uint8_t, 4>;
HistoryKeyBytes encode_history_key(RoundIndex checkpoint);
std::optional<RoundIndex> decode_history_key(ByteView bytes);

// kLedger: an account by the volunteer's identity, the receipts of a round, or the single record of
// lease epochs.
using AccountKeyBytes = std::array<std::uint8_t, 17>;
AccountKeyBytes encode_account_key(const KeyId& identity);
std::optional<KeyId> decode_account_key(ByteView bytes);
// All accounts lie in [account_keys_begin, account_keys_end).
ByteView account_keys_begin();
ByteView account_keys_end();
ByteView lease_epoch_key();
using ReceiptsKeyBytes = std::array<std::uint8_t, 5>;
ReceiptsKeyBytes encode_receipts_key(RoundIndex round);
std::optional<RoundIndex> decode_receipts_key(ByteView bytes);

// kRun: words, or words followed by a number.
inline constexpr std::string_view kIdentityKey = "identity";
inline constexpr std::string_view kProgressKey = "progress";
inline constexpr std::string_view kSettingsKey = "settings";
inline constexpr std::string_view kFoldKey = "fold";
// Label counts are stored in chunks of N labels, shard digests by shard.
inline constexpr std::uint32_t kLabelCountsPerChunk = 65536;
Bytes label_counts_key(std::uint32_t chunk);
Bytes shard_digest_key(ShardId shard);

// A key in words, for errors: "shard 3, row 17".
std::string describe_key(Table table, ByteView key);

}  // namespace gleaner
