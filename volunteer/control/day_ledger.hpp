// Counts what a volunteer did and moved on this day, over restarts where it has a folder. One
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.hpp"

namespace gleaner::volunteer {

struct DayFigures {
  std::uint64_t examples = 0;
  std::uint64_t up_bytes = 0;
  std::uint64_t down_bytes = 0;
  friend bool operator==(const DayFigures&, const DayFigures&) = default;
};

// "2026-11-25" in local time.
std::string day_name(std::int64_t wall_seconds);

class DayLedger {
 public:
  // Reads what the folder's file says of this day. Empty `folder`: nothing is kept.
  DayLedger(std::string folder, std::string day);

  // `life` is what this process has done since it started; a new day starts from zero.
  void note(const DayFigures& life, const std::string& day);

  [[nodiscard]] const DayFigures& today() const { return today_; }

  [[nodiscard]] Result<void> save() const;

 private:
  const std::string path_;
  std::string day_;
  DayFigures today_;
  DayFigures life_;  // at the last note()
};

}  // namespace gleaner::volunteer
