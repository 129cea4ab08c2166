// The loops that training and evaluation spend their time in, timed one by one on data of the
// machine's own making, each beside what the machine's peaks allow.
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
  std::string unit;  // of what one costs `seconds`
  double seconds = 0;
  double floor_seconds = 0;  // by the peak named in `bound`; 0 where none is known
  std::string bound;
};

struct BenchShape {
  std::uint32_t hidden = 128;
  double budget = 0.2;                                // seconds a figure
  std::string folder;                                 // for the storage figures
  std::uint32_t stored_rows = 65'536;                 // in these
  std::uint64_t file_bytes = std::uint64_t{6} << 30;  // of a file written there
  // Rows of the layers that steps are timed on, ascending: 8 MiB at H = 128, 32, and 128.
  std::array<std::uint32_t, 3> layers = {16'384, 65'536, 262'144};
  std::uint32_t step_batches = 50;  // of a whole step's figure, and as many to warm it up
};

// Kernels and hashing.
std::vector<BenchLine> bench_kernels(const MachinePeaks& peaks, const BenchShape& shape);
// The lines of hashing alone.
std::vector<BenchLine> bench_hashing(const MachinePeaks& peaks, const BenchShape& shape);
// The code around the kernels in training.
std::vector<BenchLine> bench_training(const Kernels& kernels, const BenchShape& shape);
// Messages on the network: packing and unpacking them.
std::vector<BenchLine> bench_codec(const BenchShape& shape);
// The rest of a message's cost, by the programs' own sockets over loopback.
Result<std::vector<BenchLine>> bench_messages(const BenchShape& shape);
// The processor time of writing a byte of a file, in the first and in the last of 24 parts of a
// file of `file_bytes`, fewer where disk or memory are small. The machine has pages at hand for as
// much of it; a virtual one may have to ask its host for each of the others, which can take ten
// times as long as the copying. To be called first: pages that something just gave back are at
// hand.
Result<std::vector<BenchLine>> bench_files(const BenchShape& shape);
// Rounds of a small run staged, folded and read back, in a folder that is removed.
Result<std::vector<BenchLine>> bench_storage(const BenchShape& shape);

}  // namespace gleaner
