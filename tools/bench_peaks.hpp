// What one core of this machine can do at most: the roofline that the kernels are held against.
#pragma once

#include <cstddef>
#include <vector>

#include "common/kernels/simd_level.hpp"

namespace gleaner {

struct MemoryPeak {
  const char* name;
  std::size_t bytes = 0;         // of the array that was walked
  double read_per_second = 0;    // bytes
  double update_per_second = 0;  // bytes read, as many are written in their place
};

struct MachinePeaks {
  SimdLevel level = SimdLevel::kScalar;
  double flops_per_second = 0;     // of fused multiply-adds that stay in registers, two each
  std::vector<MemoryPeak> memory;  // first, second, third cache level, main memory
};

// With the instructions of `level`, which must be available. `budget` seconds a figure.
MachinePeaks measure_peaks(SimdLevel level, double budget);

}  // namespace gleaner
