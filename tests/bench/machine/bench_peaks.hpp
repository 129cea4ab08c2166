// The peaks of one core of this machine: the roofline of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/train/kernels.hpp"

namespace gleaner {

struct MemoryPeak {
  const char* name;
  std::size_t bytes = 0;         // of the array
  double read_per_second = 0;    // bytes
  double update_per_second = 0;  // bytes read, and as many written in their place
};

struct MachinePeaks {
  SimdLevel level = SimdLevel::kScalar;
  double flops_per_second = 0;  // of fused multiply-adds in registers, two each
  // First, second and third cache level; main memory from end to end; main memory for a random half
  // of the rows, ascending, as a batch reads a wide layer.
  std::vector<MemoryPeak> memory;
};

// Places in MachinePeaks::memory.
inline constexpr std::size_t kSecondLevel = 1;
inline constexpr std::size_t kPickedRows = 4;

// About half of `rows`, at random, ascending.
std::vector<std::uint32_t> picked_rows(std::size_t rows);

// With the instructions of `level`, which must be available. Takes `budget` seconds per figure.
// Picked rows have `hidden` floats.
MachinePeaks measure_peaks(SimdLevel level, std::uint32_t hidden, double budget);

}  // namespace gleaner
