// `gleaner dataset synth`.
#pragma once

#include <cstdint>
#include <string>

#include "tools/cli/console.hpp"
#include "tools/dataset/make/dataset_synth_points.hpp"

namespace gleaner {

struct SynthFlags {
  std::string train;
  std::string test;  // empty: none
  std::uint64_t points = 100'000;
  std::uint64_t test_points = 10'000;
  SynthOptions options;
  bool json = false;
  bool force = false;
};

Result<void> run_dataset_synth(const SynthFlags& flags);

}  // namespace gleaner
