#include "storage/engine/rocks_store.hpp"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "storage/run_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/rocks_run.hpp"
#include "tests/unit/storage/small_run.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

namespace fs = std::filesystem;
using test::check_error;
using test::require_ok;
using test::require_value;
using test::TemporaryFolder;

TEST_CASE("rocks store: a run is there when it is opened again", "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  std::string digest;
  {
    const auto run = open_run(path, bulk_bytes);
    require_ok(test::train_to(*run, 3));
    digest = require_value(run->checkpoint_digest());
  }
  CHECK(digest_of(path) == digest);
  const auto run = open_run(path, bulk_bytes);
  CHECK(run->checkpoint() == 3);
  CHECK(require_value(run->checkpoint_digest()) == digest);
}

TEST_CASE("rocks store: a second master is refused, a reader is not", "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const TemporaryFolder folder;
  const auto run = open_run(folder.path(), bulk_bytes);
  require_ok(test::train_to(*run, 1));
  check_error(open_rocks_store(folder.path(), OpenMode::kReadWrite), ErrorCode::kBusy,
              "another gleaner-master is using the store " + folder.path() + ": stop it first");
  const std::string digest = require_value(run->checkpoint_digest());
  CHECK(digest_of(folder.path()) == digest);
  require_ok(test::train_to(*run, 2));
  CHECK(digest_of(folder.path()) == require_value(run->checkpoint_digest()));
  CHECK(digest_of(folder.path()) != digest);
}

TEST_CASE("rocks store: a lock of another process is refused as well", "[storage]") {
  const TemporaryFolder folder;
  open_run(folder.path());
  int ready[2];
  int done[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(done) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int lock = open((folder.path() + "/LOCK").c_str(), O_RDWR | O_CLOEXEC);

    struct flock whole {};

    whole.l_type = F_WRLCK;
    const bool has_lock = lock >= 0 && fcntl(lock, F_SETLK, &whole) == 0;
    char byte = has_lock ? 1 : 0;
    if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  char has_lock = 0;
  REQUIRE(read(ready[0], &has_lock, 1) == 1);
  CHECK(has_lock == 1);
  check_error(open_rocks_store(folder.path(), OpenMode::kReadWrite), ErrorCode::kBusy, "stop it");
  REQUIRE(write(done[1], "x", 1) == 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (const int end : {ready[0], ready[1], done[0], done[1]}) close(end);
  CHECK(open_rocks_store(folder.path(), OpenMode::kReadWrite).ok());
}

TEST_CASE("rocks store: reading writes nothing, and refuses to", "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const TemporaryFolder folder;
  const auto run = open_run(folder.path(), bulk_bytes);
  require_ok(test::train_to(*run, 2));
  const auto before = listing(folder.path());
  {
    auto store = require_value(open_rocks_store(folder.path(), OpenMode::kReadOnly));
    WriteBatch batch;
    batch.put(Table::kRun, as_bytes("a"), as_bytes("b"));
    check_error(store->write(std::move(batch), Durability::kSync), ErrorCode::kInvalidArgument,
                "reading only");
    require_value(require_value(RunStore::open(std::move(store)))->checkpoint_digest());
  }
  CHECK(listing(folder.path()) == before);
}

TEST_CASE("rocks store: a reader keeps its view while the master goes on", "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const TemporaryFolder folder;
  const auto run = open_run(folder.path(), bulk_bytes);
  require_ok(test::train_to(*run, 1));
  const std::string digest = require_value(run->checkpoint_digest());
  const auto view = require_value(
      RunStore::open(require_value(open_rocks_store(folder.path(), OpenMode::kReadOnly))));
  require_ok(test::train_to(*run, 5));
  CHECK(view->checkpoint() == 1);
  CHECK(require_value(view->checkpoint_digest()) == digest);
}

TEST_CASE("rocks store: what a killed process leaves is whole at every moment", "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  std::map<RoundIndex, std::string> digests;
  const auto run = open_run(path, bulk_bytes);
  std::uint32_t copies = 0;
  // A copy of the folder while the store is open is what kill -9 leaves.
  const auto check_copy = [&](RoundIndex staged_round) {
    const std::string copy = folder.path() + "/copy" + std::to_string(copies++);
    fs::copy(path, copy, fs::copy_options::recursive);
    const auto again = open_run(copy, bulk_bytes);
    CHECK(again->checkpoint() == run->checkpoint());
    CHECK(require_value(again->checkpoint_digest()) == digests.at(again->checkpoint()));
    CHECK(require_value(again->is_staged(staged_round, ShardId{4})));
  };
  for (RoundIndex round = 0; round < 3; ++round) {
    digests[round] = require_value(run->checkpoint_digest());
    require_ok(test::stage_round(*run, round));
    check_copy(round);
    require_ok(run->fold(round, test::make_history(round + 1)));
    digests[round + 1] = require_value(run->checkpoint_digest());
    check_copy(round);
  }
}

TEST_CASE("rocks store: a log cut at any byte opens at a whole checkpoint", "[storage]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  std::map<RoundIndex, std::string> digests;
  const auto run = open_run(path);
  for (RoundIndex checkpoint = 0; checkpoint <= 2; ++checkpoint) {
    require_ok(test::train_to(*run, checkpoint));
    digests[checkpoint] = require_value(run->checkpoint_digest());
  }
  const std::vector<fs::path> logs = files_with(path, ".log");
  REQUIRE(logs.size() == 1);
  const std::uintmax_t size = fs::file_size(logs[0]);
  std::map<RoundIndex, int> seen;
  for (int step = 0; step < 40; ++step) {
    const std::string copy = folder.path() + "/copy";
    fs::remove_all(copy);
    fs::copy(path, copy, fs::copy_options::recursive);
    fs::resize_file(copy / logs[0].filename(), size * static_cast<unsigned>(step) / 40);
    INFO("cut at " << size * static_cast<unsigned>(step) / 40 << " of " << size);
    // open_run makes the run again when even its creation was cut off.
    const auto again = open_run(copy);
    ++seen[again->checkpoint()];
    CHECK(require_value(again->checkpoint_digest()) == digests.at(again->checkpoint()));
    require_ok(again->discard_staged());
    require_ok(test::train_to(*again, 2));
    CHECK(require_value(again->checkpoint_digest()) == digests.at(2));
  }
  CHECK(seen[0] > 0);
  CHECK(seen[1] > 0);
}

TEST_CASE("rocks store: a flipped bit in its files is found", "[storage]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  {
    const auto run = open_run(path);
    require_ok(test::train_to(*run, 2));
  }
  const auto damage = [&](const std::string& extension) {
    for (const fs::path& file : files_with(path, extension)) {
      const auto size = static_cast<std::streamoff>(fs::file_size(file));
      if (size < 64) continue;
      const std::string copy = folder.path() + "/copy";
      fs::remove_all(copy);
      fs::copy(path, copy, fs::copy_options::recursive);
      {
        std::fstream stream(copy / file.filename(),
                            std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(size / 3);
        const int byte = stream.get();
        stream.seekp(size / 3);
        stream.put(static_cast<char>(byte ^ 0x10));
      }
      INFO(file.filename());
      auto store = open_rocks_store(copy, OpenMode::kReadWrite);
      if (!store) {
        check_error(store, ErrorCode::kCorrupt, "store " + copy + " is damaged");
        continue;
      }
      auto run = RunStore::open(std::move(*store));
      if (!run) {
        CHECK(run.error().code == ErrorCode::kCorrupt);
        continue;
      }
      const auto digest = (*run)->checkpoint_digest();
      REQUIRE_FALSE(digest.ok());
      CHECK(digest.error().code == ErrorCode::kCorrupt);
    }
  };
  SECTION("in the log") {
    damage(".log");
  }
  SECTION("in the tables") {
    // Two reopenings: the first leaves the log's content in memory, closing flushes nothing, so
    // push it out by hand.
    rocksdb::DB* database = nullptr;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    std::vector<std::string> names;
    REQUIRE(rocksdb::DB::ListColumnFamilies({}, path, &names).ok());
    for (const std::string& name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    REQUIRE(rocksdb::DB::Open({}, path, families, &handles, &database).ok());
    REQUIRE(database->Flush({}, handles).ok());
    for (auto* handle : handles) database->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    delete database;
    REQUIRE(files_with(path, ".sst").size() >= 3);
    damage(".sst");
  }
}

TEST_CASE("rocks store: what is staged can be discarded twice, and when it cannot be read",
          "[storage]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  std::string staged_table;
  {
    const auto run = open_run(path);
    require_ok(test::train_to(*run, 1));
    require_ok(test::stage_round(*run, 1));
    require_ok(test::settle_round(*run, 1));
  }
  {
    // Pushed into a table of its own, which is then damaged.
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    std::vector<std::string> names;
    REQUIRE(rocksdb::DB::ListColumnFamilies({}, path, &names).ok());
    for (const std::string& name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    rocksdb::DB* database = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    REQUIRE(rocksdb::DB::Open({}, path, families, &handles, &database).ok());
    REQUIRE(database->Flush({}, handles).ok());
    std::vector<rocksdb::LiveFileMetaData> files;
    database->GetLiveFilesMetaData(&files);
    for (const auto& file : files) {
      if (file.column_family_name == "staged") staged_table = path + file.name;
    }
    for (auto* handle : handles) database->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    delete database;
  }
  REQUIRE_FALSE(staged_table.empty());
  {
    std::fstream stream(staged_table, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(100);
    stream.put('x').put('y');
  }
  const auto run = open_run(path);
  check_error(run->is_staged(1, ShardId{0}), ErrorCode::kCorrupt, "store " + path + " is damaged");
  if (GENERATE(false, true)) {
    std::size_t damages = 0;
    const auto count = [&](const Error&) { ++damages; };
    CHECK(require_value(run->keep_settled([](RoundIndex) { return false; }, count)).empty());
    CHECK(damages == run->shard_map().shard_count());
  } else {
    require_ok(run->discard_staged());
    require_ok(run->discard_staged());
  }
  CHECK_FALSE(require_value(run->is_staged(1, ShardId{0})));
  require_ok(test::train_to(*run, 3));
  const auto calm = open_run(folder.path() + "/calm");
  require_ok(test::train_to(*calm, 3));
  CHECK(require_value(run->checkpoint_digest()) == require_value(calm->checkpoint_digest()));
}

TEST_CASE("rocks store: settled commits stay between others that go", "[storage]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto keep = [](RunStore& run) {
    return require_value(run.keep_settled([](RoundIndex) { return false; },
                                          [](const Error& error) { FAIL(error.message); }));
  };
  std::vector<SettledRound> expected;
  {
    const auto run = open_run(path);
    for (const RoundIndex round : {0u, 1u}) require_ok(test::stage_round(*run, round));
    for (const std::uint32_t shard : {1u, 3u}) {
      expected.push_back(test::make_settled(0, ShardId{shard}));
      require_ok(run->settle(expected.back()));
    }
  }
  for (int start = 0; start < 2; ++start) CHECK(keep(*open_run(path)) == expected);
  const auto run = open_run(path);
  for (std::uint32_t s = 0; s < run->shard_map().shard_count(); ++s) {
    CHECK(require_value(run->is_staged(0, ShardId{s})) == (s == 1 || s == 3));
    CHECK_FALSE(require_value(run->is_staged(1, ShardId{s})));
  }
  require_ok(test::train_to(*run, 2));
  const auto calm = open_run(folder.path() + "/calm");
  require_ok(test::train_to(*calm, 2));
  CHECK(require_value(run->checkpoint_digest()) == require_value(calm->checkpoint_digest()));
}

TEST_CASE("rocks store: a snapshot stays as it was and goes when the store is opened again",
          "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  auto run = open_run(path, bulk_bytes);
  require_ok(test::train_to(*run, 2));
  const std::string digest = require_value(run->checkpoint_digest());
  const std::string snapshot = require_value(run->snapshot());
  require_ok(test::train_to(*run, 4));
  CHECK(digest_of(snapshot) == digest);
  CHECK(require_value(run->snapshot()) == snapshot);
  CHECK(digest_of(snapshot) == require_value(run->checkpoint_digest()));
  run.reset();
  open_run(path, bulk_bytes);
  CHECK_FALSE(fs::exists(snapshot));
}

TEST_CASE("rocks store: folders that are no store are refused in words", "[storage]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "text";
  check_error(open_rocks_store(file, OpenMode::kReadWrite), ErrorCode::kInvalidArgument,
              file + " is not a folder");
  check_error(open_rocks_store(folder.path(), OpenMode::kReadWrite), ErrorCode::kInvalidArgument,
              "holds other files, such as 'file'; name a new or an empty folder");
  check_error(open_rocks_store(folder.path(), OpenMode::kReadOnly), ErrorCode::kNotFound,
              "is not a store");
  check_error(open_rocks_store(file, OpenMode::kReadOnly), ErrorCode::kNotFound, "is not a store");
  check_error(open_rocks_store(folder.path() + "/none", OpenMode::kReadOnly), ErrorCode::kNotFound,
              "there is no store at");
  CHECK_FALSE(fs::exists(folder.path() + "/none"));
  check_error(open_rocks_store(file + "/below", OpenMode::kReadWrite), ErrorCode::kIo, "below");
  // Nothing was added to the folder that was refused.
  CHECK(listing(folder.path()).size() == 1);
}

TEST_CASE("rocks store: a database that is not Gleaner's is refused and left alone", "[storage]") {
  const TemporaryFolder folder;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* database = nullptr;
  const std::string plain = folder.path() + "/plain";
  REQUIRE(rocksdb::DB::Open(options, plain, &database).ok());
  REQUIRE(database->Put({}, "a", "b").ok());
  delete database;
  check_error(open_rocks_store(plain, OpenMode::kReadWrite), ErrorCode::kInvalidArgument,
              "not Gleaner's");
  check_error(open_rocks_store(plain, OpenMode::kReadOnly), ErrorCode::kNotFound, "no run");

  const std::string other = folder.path() + "/other";
  REQUIRE(rocksdb::DB::Open(options, other, &database).ok());
  rocksdb::ColumnFamilyHandle* family = nullptr;
  REQUIRE(database->CreateColumnFamily({}, "graphs", &family).ok());
  database->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  delete database;
  check_error(open_rocks_store(other, OpenMode::kReadWrite), ErrorCode::kVersion, "'graphs'");

  std::vector<std::string> names;
  REQUIRE(rocksdb::DB::ListColumnFamilies({}, plain, &names).ok());
  CHECK(names.size() == 1);
}

TEST_CASE("rocks store: a creation that was cut off is taken up", "[storage]") {
  const TemporaryFolder folder;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* database = nullptr;
  REQUIRE(rocksdb::DB::Open(options, folder.path(), &database).ok());
  delete database;
  check_error(open_rocks_store(folder.path(), OpenMode::kReadOnly), ErrorCode::kNotFound, "no run");
  require_ok(test::train_to(*open_run(folder.path()), 1));
}

TEST_CASE("rocks store: without permission the sentence says so", "[storage]") {
  if (geteuid() == 0) {
    WARN("skipped: permissions do not bind the superuser");
    return;
  }
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  open_run(path);
  REQUIRE(chmod(path.c_str(), 0500) == 0);
  check_error(open_rocks_store(path, OpenMode::kReadWrite), ErrorCode::kIo, "may not be written");
  CHECK(open_rocks_store(path, OpenMode::kReadOnly).ok());
  REQUIRE(chmod(path.c_str(), 0000) == 0);
  check_error(open_rocks_store(path, OpenMode::kReadOnly), ErrorCode::kIo, "may not be read");
  REQUIRE(chmod(path.c_str(), 0700) == 0);
}

}  // namespace
}  // namespace gleaner
