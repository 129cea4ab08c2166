// Operations on a store's tables that are written together or not at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "common/bytes.hpp"

namespace gleaner {

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

// The operations lie one after the other in chunks; what is large goes through Store::begin_sorted
// instead.
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

}  // namespace gleaner
