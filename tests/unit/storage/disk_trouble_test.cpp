// Power that fails under the real engine, and disks that do: of every file only what was synced is
// left. This program's fsync and fdatasync note how long each file was when it was synced; they and
// pread fail when they are told to.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "storage/engine/rocks_store.hpp"
#include "storage/run_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using FileId = std::pair<dev_t, ino_t>;  // survives a renaming

struct Synced {
  std::mutex mutex;
  std::map<FileId, off_t> bytes;
};

Synced& synced() {
  static Synced files;
  return files;
}

std::atomic<int> trouble{0};  // an errno

int sync_and_note(long call, int file) {
  if (trouble != 0) {
    errno = trouble;
    return -1;
  }

  struct stat status {};

  const bool is_known = fstat(file, &status) == 0;
  const auto outcome = static_cast<int>(syscall(call, file));
  if (is_known && outcome == 0) {
    const std::lock_guard lock(synced().mutex);
    synced().bytes[{status.st_dev, status.st_ino}] = status.st_size;
  }
  return outcome;
}

namespace fs = std::filesystem;
using test::require_ok;
using test::require_value;
using test::TemporaryFolder;

const Bytes kLazyKey{1}, kSyncedKey{2}, kLateKey{3};

// Copies what a power loss leaves of the folder.
void cut_power(const std::string& source, const std::string& target) {
  fs::remove_all(target);
  fs::create_directories(target);
  for (const fs::directory_entry& entry : fs::directory_iterator(source)) {
    if (!entry.is_regular_file()) continue;
    const std::string copy = target + "/" + entry.path().filename().string();
    fs::copy_file(entry.path(), copy);

    struct stat status {};

    REQUIRE(stat(entry.path().c_str(), &status) == 0);
    const std::lock_guard lock(synced().mutex);
    fs::resize_file(copy,
                    static_cast<std::uintmax_t>(synced().bytes[{status.st_dev, status.st_ino}]));
  }
}

std::unique_ptr<Store> open_store(const std::string& path, std::size_t bulk_bytes) {
  return require_value(open_rocks_store(path, OpenMode::kReadWrite, {.bulk_bytes = bulk_bytes}));
}

void put_lazily(Store& store, const Bytes& key) {
  WriteBatch batch;
  batch.put(Table::kLedger, key, Bytes(100, 7));
  require_ok(store.write(std::move(batch), Durability::kLazy));
}

// Through the log, or past it into files.
void put_synced(Store& store, const Bytes& key) {
  const auto writer = require_value(store.begin_sorted(100));
  require_ok(writer->put(Table::kLedger, key, Bytes(100, 7)));
  require_ok(writer->finish());
}

bool has(Store& store, const Bytes& key) {
  return require_value(store.get(Table::kLedger, key)).has_value();
}

}  // namespace

extern "C" [[gnu::visibility("default")]] ssize_t pread(int file, void* target, std::size_t bytes,
                                                        off_t at) {
  if (trouble != 0) {
    errno = trouble;
    return -1;
  }
  return syscall(SYS_pread64, file, target, bytes, at);
}

// Seen by the libraries that this program loads.
extern "C" [[gnu::visibility("default")]] int fsync(int file) {
  return sync_and_note(SYS_fsync, file);
}

extern "C" [[gnu::visibility("default")]] int fdatasync(int file) {
  return sync_and_note(SYS_fdatasync, file);
}

TEST_CASE("power loss: what was synced is left, with all that was written before it", "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store", left = folder.path() + "/left";
  const auto store = open_store(path, bulk_bytes);
  put_lazily(*store, kLazyKey);
  put_synced(*store, kSyncedKey);
  put_lazily(*store, kLateKey);
  cut_power(path, left);
  const auto found = open_store(left, bulk_bytes);
  CHECK(has(*found, kLazyKey));
  CHECK(has(*found, kSyncedKey));
  CHECK_FALSE(has(*found, kLateKey));  // the power did fail
}

TEST_CASE("power loss: a checkpoint is left whole when its fold has returned", "[storage]") {
  const std::size_t bulk_bytes = GENERATE(kRocksBulkBytes, std::size_t{0});
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store", left = folder.path() + "/left";
  const RunIdentity identity = test::small_identity();
  const auto run = require_value(RunStore::create_or_open(open_store(path, bulk_bytes), identity,
                                                          test::small_label_counts(identity)));
  for (const RoundIndex checkpoint : {1u, 2u}) {
    require_ok(test::train_to(*run, checkpoint));
    cut_power(path, left);
    const auto found = require_value(RunStore::open(open_store(left, bulk_bytes)));
    REQUIRE(found->checkpoint() == checkpoint);
    REQUIRE(require_value(found->checkpoint_digest()) == require_value(run->checkpoint_digest()));
  }
}

TEST_CASE("disk: what cannot be read is an error, and not what is not there", "[storage]") {
  const TemporaryFolder folder;
  const auto store = open_store(folder.path() + "/store", 0);  // past the log, into files
  put_synced(*store, kSyncedKey);
  trouble = EIO;
  const auto got = store->get(Table::kLedger, kSyncedKey);
  const auto scanned = store->scan(Table::kLedger, {}, {}, [](ByteView, ByteView) { return true; });
  trouble = 0;
  test::check_error(got, ErrorCode::kIo, "reading the store");
  test::check_error(scanned, ErrorCode::kIo, "reading the store");
  CHECK(has(*store, kSyncedKey));
}

TEST_CASE("disk: after a write that could not be synced nothing is written any more", "[storage]") {
  const TemporaryFolder folder;
  const auto [number, code] =
      GENERATE(std::pair(EIO, ErrorCode::kIo), std::pair(ENOSPC, ErrorCode::kStoreUnsure),
               std::pair(EDQUOT, ErrorCode::kStoreUnsure));
  const auto store = open_store(folder.path() + "/store", kRocksBulkBytes);
  put_synced(*store, kSyncedKey);
  const auto write = [&] {
    WriteBatch batch;
    batch.put(Table::kLedger, kLateKey, Bytes(100, 7));
    return store->write(std::move(batch), Durability::kSync);
  };
  trouble = number;
  const Result<void> failed = write();
  trouble = 0;
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().code == code);
  test::check_error(write(), ErrorCode::kIo, "failed before");
  CHECK(has(*store, kSyncedKey));
}

}  // namespace gleaner
