// The promises of both stores, and what each does beyond them.
#include "storage/engine/store.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "storage/engine/memory_store.hpp"
#include "storage/engine/rocks_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using test::check_error;
using test::require_ok;
using test::require_value;

std::optional<std::string> get(Store& store, Table table, const std::string& key) {
  const auto value = require_value(store.get(table, as_bytes(key)));
  if (!value) return std::nullopt;
  return std::string(as_text(*value));
}

std::string scan(Store& store, Table table, const std::string& begin, const std::string& end,
                 std::size_t limit = 100) {
  std::string seen;
  require_ok(store.scan(table, as_bytes(begin), as_bytes(end), [&](ByteView key, ByteView value) {
    seen += std::string(as_text(key)) + "=" + std::string(as_text(value)) + " ";
    return --limit > 0;
  }));
  return seen;
}

WriteBatch put(Table table, const std::string& key, const std::string& value) {
  WriteBatch batch;
  batch.put(table, as_bytes(key), as_bytes(value));
  return batch;
}

void check_promises(Store& store) {
  CHECK(get(store, Table::kRun, "a") == std::nullopt);
  WriteBatch batch;
  batch.put(Table::kRun, as_bytes("a"), as_bytes("1"));
  batch.put(Table::kRun, as_bytes("c"), as_bytes("3"));
  batch.put(Table::kRun, as_bytes("b"), as_bytes(""));
  batch.put(Table::kRows, as_bytes("a"), as_bytes("other table"));
  batch.put(Table::kRun, as_bytes("d"), as_bytes("4"));
  batch.put(Table::kRun, as_bytes("c"), as_bytes("33"));
  batch.erase(Table::kRun, as_bytes("d"));
  require_ok(store.write(std::move(batch), Durability::kSync));
  CHECK(get(store, Table::kRun, "a") == "1");
  CHECK(get(store, Table::kRun, "b") == "");
  CHECK(get(store, Table::kRun, "c") == "33");
  CHECK(get(store, Table::kRun, "d") == std::nullopt);
  CHECK(get(store, Table::kRows, "a") == "other table");
  CHECK(scan(store, Table::kRun, "", "") == "a=1 b= c=33 ");
  CHECK(scan(store, Table::kRun, "a", "c") == "a=1 b= ");
  CHECK(scan(store, Table::kRun, "aa", "") == "b= c=33 ");
  CHECK(scan(store, Table::kRun, "", "", 1) == "a=1 ");
  CHECK(scan(store, Table::kHistory, "", "").empty());
  WriteBatch erase;
  erase.erase(Table::kRun, as_bytes("a"));
  erase.erase(Table::kRun, as_bytes("never there"));
  require_ok(store.write(std::move(erase), Durability::kLazy));
  CHECK(scan(store, Table::kRun, "", "") == "b= c=33 ");
}

void check_sorted_promises(Store& store) {
  require_ok(store.write(put(Table::kRun, "b", "old"), Durability::kLazy));
  const auto begin = [&] {
    auto writer = require_value(store.begin_sorted(100));
    require_ok(writer->put(Table::kRun, as_bytes("a"), as_bytes("1")));
    require_ok(writer->put(Table::kRows, as_bytes("x"), as_bytes("")));
    require_ok(writer->put(Table::kRun, as_bytes("b"), as_bytes("2")));
    CHECK(scan(store, Table::kRun, "", "") == "b=old ");
    return writer;
  };
  begin().reset();
  CHECK(scan(store, Table::kRun, "", "") == "b=old ");
  CHECK(scan(store, Table::kRows, "", "").empty());
  auto writer = begin();
  require_ok(store.write(put(Table::kRun, "c", "in between"), Durability::kLazy));
  require_ok(writer->finish());
  writer.reset();
  CHECK(scan(store, Table::kRun, "", "") == "a=1 b=2 c=in between ");
  CHECK(scan(store, Table::kRows, "", "") == "x= ");
  auto eraser = require_value(store.begin_sorted(100));
  require_ok(eraser->erase(Table::kRun, as_bytes("a")));
  require_ok(eraser->erase(Table::kRun, as_bytes("aa, never there")));
  require_ok(eraser->put(Table::kRun, as_bytes("c"), as_bytes("4")));
  CHECK(scan(store, Table::kRun, "", "") == "a=1 b=2 c=in between ");
  require_ok(eraser->finish());
  eraser.reset();
  CHECK(scan(store, Table::kRun, "", "") == "b=2 c=4 ");
  require_ok(require_value(store.begin_sorted(100))->finish());
  require_ok(store.write(put(Table::kRun, "b", "3"), Durability::kSync));
  CHECK(scan(store, Table::kRun, "", "") == "b=3 c=4 ");
}

TEST_CASE("stores: both keep the same promises", "[storage]") {
  SECTION("memory") {
    MemoryStore store;
    check_promises(store);
  }
  SECTION("rocksdb") {
    const test::TemporaryFolder folder;
    const auto store =
        require_value(open_rocks_store(folder.path() + "/new/store", OpenMode::kReadWrite));
    check_promises(*store);
  }
}

TEST_CASE("stores: a batch written while it is made is there whole or not at all", "[storage]") {
  SECTION("memory") {
    MemoryStore store;
    check_sorted_promises(store);
  }
  SECTION("rocksdb, through the log and past it") {
    const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
    const test::TemporaryFolder folder;
    const auto store = require_value(
        open_rocks_store(folder.path(), OpenMode::kReadWrite, {.bulk_bytes = bulk_bytes}));
    check_sorted_promises(*store);
    CHECK_FALSE(std::filesystem::exists(folder.path() + "/incoming"));
  }
}

TEST_CASE("memory store: a crash undoes what was not synced, and only that", "[storage]") {
  MemoryStore store;
  require_ok(store.write(put(Table::kRun, "a", "1"), Durability::kLazy));
  require_ok(store.write(put(Table::kRun, "b", "1"), Durability::kSync));
  require_ok(store.write(put(Table::kRun, "a", "2"), Durability::kLazy));
  WriteBatch batch = put(Table::kRun, "a", "3");
  batch.erase(Table::kRun, as_bytes("b"));
  batch.put(Table::kRun, as_bytes("c"), as_bytes("1"));
  require_ok(store.write(std::move(batch), Durability::kLazy));
  CHECK(scan(store, Table::kRun, "", "") == "a=3 c=1 ");
  const auto handle = store.share();
  handle->crash();
  CHECK(scan(store, Table::kRun, "", "") == "a=1 b=1 ");
  handle->crash();
  CHECK(scan(store, Table::kRun, "", "") == "a=1 b=1 ");
}

TEST_CASE("memory store: a crash may keep the first of the batches that were not synced",
          "[storage]") {
  for (std::uint64_t survivors = 0; survivors <= 3; ++survivors) {
    MemoryStore store;
    require_ok(store.write(put(Table::kRun, "a", "0"), Durability::kSync));
    for (const char* value : {"1", "2", "3"}) {
      require_ok(store.write(put(Table::kRun, "a", value), Durability::kLazy));
    }
    CHECK(store.unsynced() == 3);
    store.crash(survivors);
    CHECK(get(store, Table::kRun, "a") == std::to_string(survivors));
    CHECK(store.unsynced() == 0);
  }
}

TEST_CASE("memory store: the death of a process keeps what was not synced", "[storage]") {
  MemoryStore store;
  require_ok(store.write(put(Table::kRun, "a", "1"), Durability::kLazy));
  store.fail_after(0);
  CHECK_FALSE(store.write(put(Table::kRun, "a", "2"), Durability::kSync).ok());
  store.restart();
  CHECK(scan(store, Table::kRun, "", "") == "a=1 ");
  require_ok(store.write(put(Table::kRun, "a", "3"), Durability::kSync));
}

TEST_CASE("memory store: after a failed write all fail until it is opened again", "[storage]") {
  for (const bool applied : {false, true}) {
    MemoryStore store;
    store.fail_after(
        1, applied ? MemoryStore::FailedWrite::kApplied : MemoryStore::FailedWrite::kDropped);
    require_ok(store.write(put(Table::kRun, "a", "1"), Durability::kSync));
    check_error(store.write(put(Table::kRun, "b", "1"), Durability::kSync), ErrorCode::kIo,
                "opened again");
    check_error(store.write(put(Table::kRun, "c", "1"), Durability::kSync), ErrorCode::kIo,
                "opened again");
    store.crash();
    CHECK(scan(store, Table::kRun, "", "") == (applied ? "a=1 b=1 " : "a=1 "));
    require_ok(store.write(put(Table::kRun, "d", "1"), Durability::kSync));
    CHECK(store.writes() == (applied ? 3 : 2));
  }
}

TEST_CASE("memory store: a copy is a store of its own", "[storage]") {
  MemoryStore store;
  require_ok(store.write(put(Table::kRun, "a", "1"), Durability::kLazy));
  const auto copy = store.copy();
  require_ok(store.write(put(Table::kRun, "a", "2"), Durability::kSync));
  copy->crash();
  CHECK(get(*copy, Table::kRun, "a") == "1");
}

}  // namespace
}  // namespace gleaner
