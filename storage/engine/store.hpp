// An ordered key-value store with column families and atomic batches: the interface to RocksDB,
// which a simulation can replace. One thread at a time, except where noted.
//
// Durability contract: when write() with Durability::kSync succeeds, the batch and every earlier
// batch survive a crash of the machine. A batch is visible completely or not at all, before and
// after a crash. After a failed write the state is unknown: every later write fails too, and the
// store must be opened again. Two errors are special. kDiskFull means that too little room was
// found beforehand: nothing was written, and the same write may be tried again. kStoreUnsure means
// that the disk filled up during a write: open the store again when there is room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"

namespace gleaner {

// Operations on a store's tables that are written together or not at all.

// The column families of a store. README.md specifies keys and values to the byte.
enum class Table : std::uint8_t {
  kRun,      // identity and progress of the run
  kRows,     // weights, bias and optimizer state of every row that training has touched
  kCodes,    // hash codes of these rows
  kStaged,   // commits that are not folded yet
  kLedger,   // accounts of volunteers, lease epochs, receipts
  kHistory,  // metrics, one record per checkpoint
};
inline constexpr std::size_t kTableCount = 6;

inline constexpr std::array<const char*, kTableCount> kTableNames = {"run",    "rows",   "codes",
                                                                     "staged", "ledger", "history"};

constexpr const char* table_name(Table table) {
  return kTableNames[static_cast<std::size_t>(table)];
}

// Operations are kept in chunks of memory; large batches go through Store::begin_sorted.
class WriteBatch {
 public:
  // `value` is nullopt for a deletion.
  using Visitor = std::function<void(Table, ByteView key, std::optional<ByteView> value)>;

  void put(Table table, ByteView key, ByteView value);
  void erase(Table table, ByteView key);

  [[nodiscard]] std::size_t size() const { return size_; }

  // Total bytes of keys and values.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // Calls `visitor` for every operation in order, and frees visited memory. Leaves the batch empty.
  void consume(const Visitor& visitor);

 private:
  void add(Table table, ByteView key, std::optional<ByteView> value);

  std::deque<Bytes> chunks_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

// A large batch that is written as it is built; see Store::begin_sorted.
class SortedWriter {
 public:
  // Without finish(), the store stays unchanged.
  virtual ~SortedWriter() = default;
  // Keys must ascend within each table. After an error the batch is lost.
  virtual Result<void> put(Table table, ByteView key, ByteView value) = 0;
  virtual Result<void> erase(Table table, ByteView key) = 0;
  // Adds the whole batch to the store, as with kSync. Call once.
  virtual Result<void> finish() = 0;
};

// kLazy survives the death of the process, but not of the machine.
enum class Durability : std::uint8_t { kLazy, kSync };

// The bytes that a table takes on the disk.
struct TableSpace {
  // One level of files. Files of level 0 overlap and wait to be merged.
  struct Level {
    int level = 0;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
  };

  Table table{};
  std::uint64_t records = 0;       // in files; includes replaced and erased records
  std::uint64_t file_bytes = 0;    // of all its files
  std::uint64_t newest_bytes = 0;  // in memory, or in the log alone
  std::vector<Level> levels;       // levels that have files
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<std::optional<Bytes>> get(Table table, ByteView key) = 0;
  // Calls visit(key, value) in key order for begin <= key < end (end empty: to the table's end),
  // until it returns false. The views are valid during the call. `visit` must not write to the
  // store.
  virtual Result<void> scan(Table table, ByteView begin, ByteView end,
                            const std::function<bool(ByteView, ByteView)>& visit) = 0;
  // Consumes the batch: its memory is freed while it is written.
  virtual Result<void> write(WriteBatch batch, Durability durability) = 0;
  // Begins a batch that is written as it is built, so that it need not fit memory. `bytes` is the
  // approximate size of its keys and values, for which there must be room. The store does not show
  // the batch before finish(), and may be read and written meanwhile. The store must outlive it.
  virtual Result<std::unique_ptr<SortedWriter>> begin_sorted(std::uint64_t bytes);

  // Erases all keys with begin <= key < end (end empty: to the table's end). Writes nothing when
  // there are none. RocksDB does not read the erased values.
  virtual Result<void> erase_range(Table table, ByteView begin, ByteView end,
                                   Durability durability);

  // kDiskFull when there is no room to write `bytes` of keys and values. Every write checks this.
  virtual Result<void> check_room(std::uint64_t bytes);
  // Freezes everything written up to now and returns the folder: a store that can be opened and
  // copied while this one is in use, until the next snapshot or opening removes it. Cheap in time
  // and space, since it shares the large files; these stay on the disk until it is removed.
  virtual Result<std::string> snapshot();

  // One entry per table, in order; empty for a store without files.
  virtual Result<std::vector<TableSpace>> space();
  // Reads every file completely, even parts that no scan reads. One error per damaged file.
  virtual std::vector<Error> damaged_files();
};

}  // namespace gleaner
