#include <catch2/catch.hpp>
#include <string>

#include "storage/record.hpp"

namespace gleaner {
namespace {

template <typename Key>
Bytes to_bytes(const Key& key) {
  return Bytes(key.begin(), key.end());
}

TEST_CASE("keys: byte order is the order of shard, then row", "[storage]") {
  const std::vector<RowKey> ascending = {{ShardId{0}, 0},   {ShardId{0}, 1},      {ShardId{0}, 255},
                                         {ShardId{0}, 256}, {ShardId{0}, ~0u},    {ShardId{1}, 0},
                                         {ShardId{256}, 0}, {ShardId{0x10000}, 7}};
  for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
    CHECK(to_bytes(encode_row_key(ascending[i])) < to_bytes(encode_row_key(ascending[i + 1])));
  }
  CHECK(to_bytes(encode_row_key({ShardId{3}, ~0u})) < row_keys_end(ShardId{3}));
  CHECK(row_keys_end(ShardId{3}) == to_bytes(encode_row_key({ShardId{4}, 0})));
  CHECK(row_keys_end(ShardId{~0u}).empty());
}

TEST_CASE("keys: the bytes are those README.md gives", "[storage]") {
  CHECK(to_bytes(encode_row_key({ShardId{0x01020304}, 0x05060708})) ==
        Bytes{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(to_bytes(encode_staged_key({0x01020304, ShardId{5}, 6})) ==
        Bytes{1, 2, 3, 4, 0, 0, 0, 5, 0, 0, 0, 6});
  CHECK(to_bytes(encode_history_key(0x01020304)) == Bytes{1, 2, 3, 4});
  CHECK(to_bytes(encode_account_key({1, 2})) ==
        Bytes{2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2});
  CHECK(to_bytes(lease_epoch_key()) == Bytes{1});
  CHECK(as_text(shard_digest_key(ShardId{0x41424344})) == "shard/ABCD");
  CHECK(as_text(label_counts_key(0x41424344)) == "label_counts/ABCD");
}

TEST_CASE("keys: what was encoded is decoded, and any other size refused", "[storage]") {
  const RowKey row{ShardId{7}, 1234567};
  CHECK(decode_row_key(encode_row_key(row)) == row);
  const StagedKey staged{9, ShardId{8}, 7};
  CHECK(decode_staged_key(encode_staged_key(staged)) == staged);
  CHECK(decode_history_key(encode_history_key(77)) == 77u);
  const KeyId account{~std::uint64_t{0}, 5};
  CHECK(decode_account_key(encode_account_key(account)) == account);

  for (std::size_t size = 0; size < 20; ++size) {
    const Bytes bytes(size, 2);
    CHECK(decode_row_key(bytes).has_value() == (size == 8));
    CHECK(decode_staged_key(bytes).has_value() == (size == 12));
    CHECK(decode_history_key(bytes).has_value() == (size == 4));
    CHECK(decode_account_key(bytes).has_value() == (size == 17));
  }
  Bytes other_kind = to_bytes(encode_account_key(account));
  other_kind[0] = 1;
  CHECK_FALSE(decode_account_key(other_kind).has_value());
}

TEST_CASE("keys: every key is described in words", "[storage]") {
  CHECK(describe_key(Table::kRows, encode_row_key({ShardId{3}, 17})) == "shard 3, row 17");
  CHECK(describe_key(Table::kCodes, encode_row_key({ShardId{3}, 17})) == "shard 3, row 17");
  CHECK(describe_key(Table::kStaged, encode_staged_key({4, ShardId{2}, 1})) ==
        "round 4, shard 2, part 1");
  CHECK(describe_key(Table::kStaged, encode_staged_key({4, ShardId{2}, kSettledPart})) ==
        "round 4, shard 2, settled");
  CHECK(describe_key(Table::kHistory, encode_history_key(12)) == "checkpoint 12");
  CHECK(describe_key(Table::kLedger, lease_epoch_key()) == "lease epochs");
  CHECK(describe_key(Table::kLedger, encode_account_key({0xa, 0xb})) ==
        "account of volunteer 000000000000000a000000000000000b");
  CHECK(describe_key(Table::kRun, as_bytes(kProgressKey)) == "progress");
  CHECK(describe_key(Table::kRun, shard_digest_key(ShardId{5})) == "digest of shard 5");
  CHECK(describe_key(Table::kRun, label_counts_key(1)) == "counts of labels 65536 to 131071");
  CHECK(describe_key(Table::kRows, as_bytes("ab")) == "0x6162");
  CHECK(describe_key(Table::kRun, {}) == "0x");
}

}  // namespace
}  // namespace gleaner
