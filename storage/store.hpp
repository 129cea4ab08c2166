// An ordered key-value store with column families and atomic batches: what Gleaner needs of
// RocksDB, and what a simulation can replace. One thread at a time, except where noted.
//
// Durability contract: when write() with Durability::kSync returns success, the batch and every
// batch before it survive a crash of the machine. A batch is visible wholly or not at all, before
// and after a crash. After any failed write the state is unknown: every later write fails too, and
// the way on is to open the store again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "storage/tables.hpp"
#include "storage/write_batch.hpp"

namespace gleaner {

// kLazy survives the death of the process, not that of the machine.
enum class Durability : std::uint8_t { kLazy, kSync };

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
};

}  // namespace gleaner
