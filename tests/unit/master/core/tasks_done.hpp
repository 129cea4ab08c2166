// Which worker and storage tasks a master had done, and the end of its run.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/master_driver.hpp"

namespace gleaner {

inline bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

inline std::size_t position(const std::vector<std::string>& all, const std::string& one) {
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), one) - all.begin());
}

inline void finish(MasterDriver& master) {
  master.settle();
  REQUIRE(master.done.has_value());
  REQUIRE(master.outcome() == Outcome::kFinished);
}

}  // namespace gleaner
