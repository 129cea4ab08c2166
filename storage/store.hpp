// An ordered key-value store with column families and atomic batches: what Gleaner needs of
// RocksDB, and what a simulation can replace. One thread at a time, except where noted.
//
// Durability contract: when write() with Durability::kSync returns success, the batch and every
// batch before it survive a crash of the machine. A batch is visible wholly or not at all, before
// and after a crash. After any failed write the state is unknown: stop and reopen.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/bytes.hpp"
#include "common/result.hpp"

namespace gleaner {

// Order is the order in which a checkpoint's digest visits them. Names in tables.hpp.
enum class Table : std::uint8_t { kRun, kRows, kCodes, kStaged, kLedger, kHistory };
inline constexpr std::size_t kTableCount = 6;

enum class Durability : std::uint8_t { kLazy, kSync };

struct WriteOperation {
  Table table = Table::kRun;
  Bytes key;
  std::optional<Bytes> value;  // nullopt deletes
};

using WriteBatch = std::vector<WriteOperation>;

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<std::optional<Bytes>> get(Table table, ByteView key) = 0;
  // Calls visit(key, value) in key order for begin <= key < end (end empty: to the table's end),
  // until it returns false.
  virtual Result<void> scan(Table table, ByteView begin, ByteView end,
                            const std::function<bool(ByteView, ByteView)>& visit) = 0;
  virtual Result<void> write(const WriteBatch& batch, Durability durability) = 0;
};

}  // namespace gleaner
