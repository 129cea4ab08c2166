// The loops of training and evaluation, timed one by one on generated data, each beside the bound
// that the machine's peaks set.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/train/kernels.hpp"
#include "tests/bench/machine/bench_peaks.hpp"

namespace gleaner {

struct BenchLine {
  std::string name;
  std::string unit;  // one of these costs `seconds`
  double seconds = 0;
  double floor_seconds = 0;  // by the peak named in `bound`; 0 where none is known
  std::string bound;
};

struct BenchShape {
  std::uint32_t hidden = 128;
  double budget = 0.2;                                // seconds per figure
  std::string folder;                                 // for the storage figures
  std::uint32_t stored_rows = 65'536;                 // of the storage figures
  std::uint64_t file_bytes = std::uint64_t{6} << 30;  // of a file written there
  // Rows of the layers that steps are timed on, ascending: 8 MiB at H = 128, 32, and 128.
  std::array<std::uint32_t, 3> layers = {16'384, 65'536, 262'144};
  std::uint32_t step_batches = 50;  // timed for a whole step, after as many to warm up
};

// Kernels and hashing.
std::vector<BenchLine> bench_kernels(const MachinePeaks& peaks, const BenchShape& shape);
// The lines of hashing alone.
std::vector<BenchLine> bench_hashing(const MachinePeaks& peaks, const BenchShape& shape);
// The code around the kernels in training.
std::vector<BenchLine> bench_training(const Kernels& kernels, const BenchShape& shape);
// Messages on the network: packing and unpacking them.
std::vector<BenchLine> bench_codec(const BenchShape& shape);
// The rest of a message's cost, over the programs' sockets on loopback.
Result<std::vector<BenchLine>> bench_messages(const BenchShape& shape);
// Processor time per written byte, in the first and in the last of 24 parts of a file of
// `file_bytes`, less where disk or memory are small. The machine has free pages for the first part.
// A virtual machine may ask its host for each later page, which can take ten times as long as the
// copying. Call this first: another bench would leave free pages.
Result<std::vector<BenchLine>> bench_files(const BenchShape& shape);
// Rounds of a small run staged, folded and read back, in a temporary folder.
Result<std::vector<BenchLine>> bench_storage(const BenchShape& shape);

}  // namespace gleaner
