// `gleaner dataset split`.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct SplitFlags {
  std::string source;
  std::string train;
  std::string test;
  double share = 0.2;  // of the points that go to `test`
  std::uint64_t seed = 1;
  bool json = false;
  ReadFlags read;
  bool force = false;
};

// Whether point `index` belongs to the test part: a hash of the seed and the index, so the same
// however often and in whatever order it is asked. 0 < share < 1.
bool is_test_point(std::uint64_t seed, std::uint64_t index, double share);

Result<void> run_dataset_split(const SplitFlags& flags);

}  // namespace gleaner
