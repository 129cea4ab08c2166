// The faults of a store, one by one, as an audit finds them. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/bytes.hpp"
#include "storage/engine/tables.hpp"

namespace gleaner {

struct Finding {
  std::string check;  // which part of the audit: "files", "rows", ...
  std::string where;  // in words: "shard 3, row 17"
  std::string what;   // a clause: "its checksum does not match"
  friend bool operator==(const Finding&, const Finding&) = default;
};

class Findings {
 public:
  // More than this are counted and not kept: memory must not depend on how bad it is.
  static constexpr std::size_t kKeptMax = 100'000;

  void add(std::string check, std::string where, std::string what);
  // About a record: `check` is the table's name.
  void add(Table table, ByteView key, std::string what);

  [[nodiscard]] const std::vector<Finding>& kept() const { return kept_; }

  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  std::vector<Finding> kept_;
  std::uint64_t count_ = 0;
};

}  // namespace gleaner
