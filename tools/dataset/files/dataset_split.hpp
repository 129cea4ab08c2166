// `gleaner dataset split`: two parts of a data set, or a sample of it.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct SplitFlags {
  std::string source;
  std::string train;
  std::string test;
  std::string sample;        // instead of the parts: a file for some points
  std::uint64_t points = 0;  // of the sample; 0: as `share` says
  double share = 0.2;        // of the points that go to `test`, or to the sample
  std::uint64_t seed = 1;
  bool json = false;
  ReadFlags read;
  bool force = false;
};

// Whether point `index` belongs to the test part: a hash of the seed and the index, so the same
// however often and in whatever order it is asked. 0 < share < 1.
bool is_test_point(std::uint64_t seed, std::uint64_t index, double share);

// Whether each of `total` points, asked for in order, belongs to a sample of exactly `wanted`. Any
// set of that size is as likely as any other, and it is a function of the three numbers alone.
class SampleChoice {
 public:
  SampleChoice(std::uint64_t seed, std::uint64_t total, std::uint64_t wanted)
      : seed_(seed), left_(total), wanted_(wanted) {}

  bool next();

 private:
  std::uint64_t seed_;
  std::uint64_t left_;    // points not asked for yet
  std::uint64_t wanted_;  // of them
  std::uint64_t index_ = 0;
};

Result<void> run_dataset_split(const SplitFlags& flags);

}  // namespace gleaner
