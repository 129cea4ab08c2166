// Counts a volunteer's work and traffic of this day, across restarts if it has a folder. One
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/access/signed_thanks.hpp"
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
  // Reads this day's figures from the folder's file. Empty `folder`: nothing is kept.
  DayLedger(std::string folder, std::string day);

  // `life` counts from this process's start. A new day starts from zero.
  void note(const DayFigures& life, const std::string& day);

  [[nodiscard]] const DayFigures& today() const { return today_; }

  [[nodiscard]] Result<void> save() const;

 private:
  const std::string path_;
  std::string day_;
  DayFigures today_;
  DayFigures life_;  // at the last note()
};

// Keeps masters' thanks across restarts, one line for each run, signed if the master has a key.

// "3 h 12 min, 41,000 examples checked".
std::string work_words(std::uint64_t seconds, std::uint64_t examples, Checked checked);

// Adds a line to the folder's file. It replaces the line that the same master signed for the same
// run; the oldest lines are dropped. Empty `folder`: nothing is kept.
Result<void> keep_thanks(const std::string& folder, const SignedThanks& thanks);
// Keeps the line of a master without a key.
Result<void> keep_thanks(const std::string& folder, const std::string& master,
                         const std::string& line);

// The lines in words, oldest first, each with its master and whether its signature is valid. Empty
// without a file.
std::vector<std::string> kept_thanks(const std::string& folder);

}  // namespace gleaner::volunteer
