// `gleaner dataset sample`.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/console.hpp"

namespace gleaner {

struct SampleFlags {
  std::string source;
  std::string output;
  std::uint64_t points = 0;  // this or `share`
  double share = 0;
  std::uint64_t seed = 1;
  bool json = false;
  ReadFlags read;
  bool force = false;
};

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

Result<void> run_dataset_sample(const SampleFlags& flags);

}  // namespace gleaner
