#include "storage/record.hpp"

#include <catch2/catch.hpp>

#include "common/access/sha256.hpp"
#include "storage/engine/store.hpp"
#include "tests/unit/storage/check_result.hpp"

namespace gleaner {
namespace {

using test::check_error;

TEST_CASE("record: a sealed payload is opened again", "[storage]") {
  for (const std::string payload : {"", "x", "a payload of some length"}) {
    const Bytes record = seal_record(Table::kRun, as_bytes("key"), as_bytes(payload));
    CHECK(record.size() == payload.size() + kRecordHeaderBytes + kRecordChecksumBytes);
    const auto opened = open_record(Table::kRun, as_bytes("key"), record);
    REQUIRE(opened.ok());
    CHECK(as_text(*opened) == payload);
  }
}

TEST_CASE("record: any flipped bit, cut or extension is corrupt", "[storage]") {
  const RowKeyBytes key = encode_row_key({ShardId{3}, 17});
  const Bytes record = seal_record(Table::kRows, key, as_bytes("weights"));
  for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
    Bytes damaged = record;
    damaged[bit / 8] = static_cast<std::uint8_t>(damaged[bit / 8] ^ (1u << (bit % 8)));
    check_error(open_record(Table::kRows, key, damaged), ErrorCode::kCorrupt,
                "shard 3, row 17 in table 'rows'");
  }
  for (std::size_t size = 0; size < record.size(); ++size) {
    check_error(open_record(Table::kRows, key, ByteView(record).first(size)), ErrorCode::kCorrupt,
                "damaged");
  }
  Bytes longer = record;
  longer.push_back(0);
  check_error(open_record(Table::kRows, key, longer), ErrorCode::kCorrupt, "damaged");
}

TEST_CASE("record: another format version is refused as such", "[storage]") {
  const RowKeyBytes key = encode_row_key({ShardId{3}, 17});
  RecordWriter writer;
  std::uint8_t* const payload = writer.begin(1);
  *payload = 7;
  *(payload - kRecordHeaderBytes) = kRecordVersion + 1;
  const ByteView record = writer.seal(Table::kRows, key);
  check_error(open_record(Table::kRows, key, record), ErrorCode::kVersion, "format version 2");
}

TEST_CASE("record: a record under another key or in another table is corrupt", "[storage]") {
  const RowKeyBytes key = encode_row_key({ShardId{3}, 17});
  const Bytes record = seal_record(Table::kRows, key, as_bytes("weights"));
  CHECK(open_record(Table::kRows, key, record).ok());
  check_error(open_record(Table::kRows, encode_row_key({ShardId{3}, 18}), record),
              ErrorCode::kCorrupt, "row 18");
  check_error(open_record(Table::kCodes, key, record), ErrorCode::kCorrupt, "'codes'");
}

TEST_CASE("sha256: digests of the standard's examples", "[storage]") {
  Sha256 empty;
  CHECK(empty.finish() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 abc;
  abc.update(as_bytes("a"));
  abc.update(as_bytes("bc"));
  CHECK(abc.finish() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("write batch: operations come back in order, also over many chunks", "[storage]") {
  WriteBatch batch;
  const Bytes large(700'000, 7);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const RowKeyBytes key = encode_row_key({ShardId{i}, i});
    batch.put(Table::kRows, key, large);
    batch.erase(Table::kStaged, key);
    batch.put(Table::kRun, key, {});
  }
  CHECK(batch.size() == 60);
  CHECK(batch.bytes() == 20 * (large.size() + 3 * 8));
  std::uint32_t seen = 0;
  batch.consume([&](Table table, ByteView key, std::optional<ByteView> value) {
    CHECK(decode_row_key(key) == RowKey{ShardId{seen / 3}, seen / 3});
    CHECK(table == (seen % 3 == 0 ? Table::kRows : seen % 3 == 1 ? Table::kStaged : Table::kRun));
    CHECK(value.has_value() == (seen % 3 != 1));
    if (seen % 3 == 0) CHECK(Bytes(value->begin(), value->end()) == large);
    ++seen;
  });
  CHECK(seen == 60);
  CHECK(batch.size() == 0);
  CHECK(batch.bytes() == 0);
}

}  // namespace
}  // namespace gleaner
