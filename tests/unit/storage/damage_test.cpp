// Stored bytes that are not what was stored: always found, always named, never used.
#include <catch2/catch.hpp>
#include <functional>
#include <utility>
#include <vector>

#include "storage/engine/memory_store.hpp"
#include "storage/record.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::require_ok;
using test::require_value;

using Entry = std::pair<Bytes, Bytes>;

// A store with something in every table: checkpoint 1, and round 1 staged and settled.
const MemoryStore& healthy() {
  static const std::unique_ptr<MemoryStore> disk = [] {
    MemoryStore made;
    const RunIdentity identity = test::small_identity();
    const auto run = require_value(
        RunStore::create_or_open(made.share(), identity, test::small_label_counts(identity)));
    require_ok(test::train_to(*run, 1));
    require_ok(test::stage_round(*run, 1));
    require_ok(test::settle_round(*run, 1));
    require_value(run->reserve_lease_epochs(3));
    AccountRecord account;
    account.name = "atlas";
    require_ok(run->put_accounts({account}));
    return made.copy();
  }();
  return *disk;
}

std::vector<Entry> entries(Store& store, Table table) {
  std::vector<Entry> all;
  require_ok(store.scan(table, {}, {}, [&](ByteView key, ByteView value) {
    all.push_back({Bytes(key.begin(), key.end()), Bytes(value.begin(), value.end())});
    return true;
  }));
  return all;
}

// Reads all that a master and the tools read; the first error.
Result<void> read_everything(const MemoryStore& disk) {
  auto opened = RunStore::open(disk.share());
  if (!opened) return opened.error();
  RunStore& run = **opened;
  if (auto digest = run.checkpoint_digest(); !digest) return digest.error();
  for (std::uint32_t s = 0; s < run.shard_map().shard_count(); ++s) {
    const ShardId shard{s};
    const auto rows = run.read_rows(shard, 0, run.shard_map().row_count(shard), 2);
    if (!rows) return rows.error();
  }
  if (auto history = run.history(); !history) return history.error();
  if (auto accounts = run.accounts(); !accounts) return accounts.error();
  if (auto decided = run.resume_fold(); !decided) return decided.error();
  if (auto epochs = run.reserve_lease_epochs(1); !epochs) return epochs.error();
  return run.fold(1, test::make_history(2));
}

void put(MemoryStore& disk, Table table, const Bytes& key, const Bytes& value) {
  WriteBatch batch;
  batch.put(table, key, value);
  require_ok(disk.write(std::move(batch), Durability::kSync));
}

void erase(MemoryStore& disk, Table table, const Bytes& key) {
  WriteBatch batch;
  batch.erase(table, key);
  require_ok(disk.write(std::move(batch), Durability::kSync));
}

void check_named(const Result<void>& result, Table table, const Bytes& key) {
  INFO(table_name(table) << ", " << describe_key(table, key));
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == ErrorCode::kCorrupt);
  CHECK_THAT(result.error().message, Catch::Contains(describe_key(table, key)));
  CHECK_THAT(result.error().message, Catch::Contains("'" + std::string(table_name(table)) + "'"));
}

TEST_CASE("damage: a healthy store reads without complaint", "[storage]") {
  require_ok(read_everything(*healthy().copy()));
}

TEST_CASE("damage: a flipped bit in any record of any table is found and named", "[storage]") {
  std::size_t flips = 0;
  for (std::size_t t = 0; t < kTableCount; ++t) {
    const auto table = static_cast<Table>(t);
    const std::vector<Entry> all = entries(*healthy().share(), table);
    REQUIRE_FALSE(all.empty());
    for (const auto& [key, value] : all) {
      // The first byte, the last one, and some between that differ from record to record.
      for (const std::size_t byte : {std::size_t{0}, value.size() - 1, flips * 37 % value.size(),
                                     flips * 101 % value.size()}) {
        Bytes damaged = value;
        damaged[byte] = static_cast<std::uint8_t>(damaged[byte] ^ (1u << (flips % 8)));
        const auto disk = healthy().copy();
        put(*disk, table, key, damaged);
        check_named(read_everything(*disk), table, key);
        ++flips;
      }
    }
  }
  CHECK(flips > 150);
}

TEST_CASE("damage: two rows that changed places are found and named", "[storage]") {
  for (const Table table : {Table::kRows, Table::kCodes, Table::kStaged}) {
    const std::vector<Entry> all = entries(*healthy().share(), table);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      const auto disk = healthy().copy();
      put(*disk, table, all[i].first, all[i + 1].second);
      put(*disk, table, all[i + 1].first, all[i].second);
      check_named(read_everything(*disk), table, all[i].first);
    }
  }
}

TEST_CASE("damage: a missing row or table entry is missed", "[storage]") {
  for (const auto& [key, value] : entries(*healthy().share(), Table::kCodes)) {
    const auto disk = healthy().copy();
    erase(*disk, Table::kCodes, key);
    check_named(read_everything(*disk), Table::kCodes, key);
  }
  for (const auto& [key, value] : entries(*healthy().share(), Table::kRows)) {
    const auto disk = healthy().copy();
    erase(*disk, Table::kRows, key);
    const std::string shard = "shard " + std::to_string(raw(decode_row_key(key)->shard));
    test::check_error(read_everything(*disk), ErrorCode::kCorrupt, shard + " is damaged");
    // Its codes without it are noticed by a reader of just that shard.
    const auto run = require_value(RunStore::open(disk->share()));
    const ShardId of = decode_row_key(key)->shard;
    if (run->shard_map().is_output(of)) {
      test::check_error(run->read_rows(of, 0, run->shard_map().row_count(of), 1),
                        ErrorCode::kCorrupt, "table 'codes'");
    }
  }
}

TEST_CASE("damage: a row from an older checkpoint is found", "[storage]") {
  const std::vector<Entry> old_rows = entries(*healthy().share(), Table::kRows);
  const auto disk = healthy().copy();
  require_ok(require_value(RunStore::open(disk->share()))->fold(1, test::make_history(2)));
  std::size_t restored = 0;
  for (const auto& [key, value] : old_rows) {
    const auto stale = disk->copy();
    if (require_value(stale->get(Table::kRows, key)) == value) continue;
    put(*stale, Table::kRows, key, value);
    const auto run = require_value(RunStore::open(stale->share()));
    test::check_error(run->checkpoint_digest(), ErrorCode::kCorrupt, "not the last folded ones");
    ++restored;
  }
  CHECK(restored >= 5);
}

TEST_CASE("damage: missing records of the run are missed", "[storage]") {
  for (const auto& [key, value] : entries(*healthy().share(), Table::kRun)) {
    if (as_text(key) == kFoldKey) continue;  // a run need not have one
    const auto disk = healthy().copy();
    erase(*disk, Table::kRun, key);
    const Result<void> read = read_everything(*disk);
    INFO(describe_key(Table::kRun, key));
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("damage: records of rows the run has not are named", "[storage]") {
  for (const Table table : {Table::kRows, Table::kCodes}) {
    for (const RowKey row :
         {RowKey{ShardId{4}, 10}, RowKey{ShardId{0}, 8}, RowKey{ShardId{5}, 0}}) {
      const RowKeyBytes key = encode_row_key(row);
      const auto disk = healthy().copy();
      put(*disk, table, Bytes(key.begin(), key.end()), seal_record(table, key, as_bytes("x")));
      check_named(read_everything(*disk), table, Bytes(key.begin(), key.end()));
    }
  }
}

TEST_CASE("damage: what is staged can be dropped when it cannot be read", "[storage]") {
  for (const auto& [key, value] : entries(*healthy().share(), Table::kStaged)) {
    const auto disk = healthy().copy();
    Bytes damaged = value;
    damaged[damaged.size() / 2] ^= 4;
    put(*disk, Table::kStaged, key, damaged);
    const auto run = require_value(RunStore::open(disk->share()));
    CHECK_FALSE(run->is_staged(1, ShardId{0}).ok());
    require_ok(run->discard_staged());
    require_ok(test::train_to(*run, 2));
    const auto calm = healthy().copy();
    const auto other = require_value(RunStore::open(calm->share()));
    require_ok(other->fold(1, test::make_history(2)));
    CHECK(require_value(run->checkpoint_digest()) == require_value(other->checkpoint_digest()));
  }
}

TEST_CASE("damage: a settled commit that cannot be read is trained again, and no other",
          "[storage]") {
  const auto calm = healthy().copy();
  const auto other = require_value(RunStore::open(calm->share()));
  require_ok(other->fold(1, test::make_history(2)));
  for (const auto& [key, value] : entries(*healthy().share(), Table::kStaged)) {
    INFO(describe_key(Table::kStaged, key));
    const auto disk = healthy().copy();
    Bytes damaged = value;
    damaged[damaged.size() / 2] ^= 4;
    put(*disk, Table::kStaged, key, damaged);
    const auto run = require_value(RunStore::open(disk->share()));
    std::vector<Error> errors;
    const auto kept = require_value(run->keep_settled(
        [](RoundIndex) { return false; }, [&](const Error& error) { errors.push_back(error); }));
    REQUIRE(errors.size() == 1);
    check_named(errors[0], Table::kStaged, key);
    const std::uint32_t lost = raw(decode_staged_key(key)->shard);
    CHECK(kept.size() == run->shard_map().shard_count() - 1);
    for (std::uint32_t s = 0; s < run->shard_map().shard_count(); ++s) {
      CHECK(require_value(run->is_staged(1, ShardId{s})) == (s != lost));
    }
    require_ok(test::train_to(*run, 2));
    CHECK(require_value(run->checkpoint_digest()) == require_value(other->checkpoint_digest()));
  }
}

TEST_CASE("damage: a store or record of another version is refused as such", "[storage]") {
  const Bytes key(kIdentityKey.begin(), kIdentityKey.end());
  const auto disk = healthy().copy();
  put(*disk, Table::kRun, key,
      seal_record(Table::kRun, key, as_bytes(R"({"store_version":99,"model":{}})")));
  test::check_error(RunStore::open(disk->share()), ErrorCode::kVersion, "version 99");
  put(*disk, Table::kRun, key, seal_record(Table::kRun, key, as_bytes("not JSON")));
  check_named(read_everything(*disk), Table::kRun, key);
}

}  // namespace
}  // namespace gleaner
