// An ordered key-value store with column families and atomic batches: what Gleaner needs of
// RocksDB, and what a simulation can replace. One thread at a time, except where noted.
//
// Durability contract: when write() with Durability::kSync returns success, the batch and every
// batch before it survive a crash of the machine. A batch is visible wholly or not at all, before
// and after a crash. After a failed write the state is unknown: every later write fails too, and
// the way on is to open the store again. One failure is different: kDiskFull means that the room
// was counted beforehand and does not suffice; nothing was written, and the same write may be tried
// again. kStoreUnsure is a failure in which the disk filled up all the same: open the store again
// when there is room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "storage/engine/write_batch.hpp"

namespace gleaner {

// A large batch that is written while it is being made; see Store::begin_sorted.
class SortedWriter {
 public:
  // Without finish(), nothing has been written.
  virtual ~SortedWriter() = default;
  // Keys ascend within each table. After an error the batch is lost.
  virtual Result<void> put(Table table, ByteView key, ByteView value) = 0;
  virtual Result<void> erase(Table table, ByteView key) = 0;
  // Everything that was put is in the store when it returns ok, with kSync. Once.
  virtual Result<void> finish() = 0;
};

// kLazy survives the death of the process, not that of the machine.
enum class Durability : std::uint8_t { kLazy, kSync };

// The bytes that a table takes on the disk.
struct TableSpace {
  // One level of files; those of level 0 overlap and wait to be merged.
  struct Level {
    int level = 0;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
  };

  Table table{};
  std::uint64_t records = 0;       // in files, those that are replaced or erased since included
  std::uint64_t file_bytes = 0;    // of all its files
  std::uint64_t newest_bytes = 0;  // in memory, or in the log alone
  std::vector<Level> levels;       // those that have files
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<std::optional<Bytes>> get(Table table, ByteView key) = 0;
  // Calls visit(key, value) in key order for begin <= key < end (end empty: to the table's end),
  // until it returns false. The views end with the call. `visit` must not write to the store.
  virtual Result<void> scan(Table table, ByteView begin, ByteView end,
                            const std::function<bool(ByteView, ByteView)>& visit) = 0;
  // Takes the batch: move it in, and its memory is freed while it is being written.
  virtual Result<void> write(WriteBatch batch, Durability durability) = 0;
  // Begins a batch that is written while it is made, which need not be held in memory. `bytes`: of
  // its keys and values, about; there has to be room for them. Until it is finished the store does
  // not show it, and may be read and written otherwise. The store outlives it.
  virtual Result<std::unique_ptr<SortedWriter>> begin_sorted(std::uint64_t bytes);

  // Writes the erasure of all keys with begin <= key < end (end empty: to the table's end); nothing
  // when there are none. A store that can do so without reading what it erases does.
  virtual Result<void> erase_range(Table table, ByteView begin, ByteView end,
                                   Durability durability);

  // kDiskFull when there is no room to write `bytes` of keys and values. Every write asks.
  virtual Result<void> check_room(std::uint64_t bytes);
  // Freezes everything written so far and returns the folder of it: a store that can be opened and
  // copied while this one goes on, until the next snapshot or opening removes it. Cheap in time and
  // room, since it shares the large files; they stay on the disk until it is removed.
  virtual Result<std::string> snapshot();

  // A line a table, in their order; empty for a store that has no files.
  virtual Result<std::vector<TableSpace>> space();
  // Reads every file whole, also what a scan passes by; one error a file whose checksums fail.
  virtual std::vector<Error> damaged_files();
};

}  // namespace gleaner
