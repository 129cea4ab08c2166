// The column families of a store. Keys are in keys.hpp, values in record.hpp; README.md specifies
// both to the byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gleaner {

enum class Table : std::uint8_t {
  kRun,      // what the run is and how far it got
  kRows,     // weights, bias and optimizer state of every row that training has touched
  kCodes,    // the same rows' hash-table entries
  kStaged,   // commits that are not folded yet
  kLedger,   // accounts of volunteers, lease epochs, receipts
  kHistory,  // metrics, one record a checkpoint
};
inline constexpr std::size_t kTableCount = 6;

inline constexpr std::array<const char*, kTableCount> kTableNames = {"run",    "rows",   "codes",
                                                                     "staged", "ledger", "history"};

constexpr const char* table_name(Table table) {
  return kTableNames[static_cast<std::size_t>(table)];
}

}  // namespace gleaner
