// The loops that training and evaluation spend their time in, timed one by one on data of the
// machine's own making, each beside what the machine's peaks allow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tools/bench_peaks.hpp"

namespace gleaner {

struct BenchLine {
  std::string name;
  std::string unit;  // of what one costs `seconds`
  double seconds = 0;
  double floor_seconds = 0;  // by the peak named in `bound`; 0 where none is known
  std::string bound;
};

struct BenchShape {
  std::uint32_t hidden = 128;
  double budget = 0.2;  // seconds a figure
  std::string folder;   // for the storage figures
};

// Kernels and hashing.
std::vector<BenchLine> bench_kernels(const MachinePeaks& peaks, const BenchShape& shape);
// What crosses the network.
std::vector<BenchLine> bench_codec(const BenchShape& shape);
// A round of a small run staged, folded and read back, in a folder that is removed.
Result<std::vector<BenchLine>> bench_storage(const BenchShape& shape);

}  // namespace gleaner
