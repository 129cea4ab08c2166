// machine_bench [--hidden N] [--folder DIR] [--quick | --tiny]: what one core of this machine does
// in Gleaner's loops of training, network and store, beside what it could do. Times are the least
// of many calls; GLEANER_SIMD chooses the instructions. The floor is the arithmetic or the bytes of
// a loop at the machine's peak, whichever takes longer. Rows picked: half of them, at random, in
// ascending order, each fetched ahead, as training wants them of a wide layer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "common/limits.hpp"
#include "tests/bench/machine/bench_loops.hpp"

namespace gleaner {
namespace {

std::string duration(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.1f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return fmt::format("{:.2f} ms", seconds * 1e3);
}

void print_peaks(const MachinePeaks& peaks) {
  fmt::print("One core, {}: {:.1f} Gflop/s of multiply-adds\n", simd_level_name(peaks.level),
             peaks.flops_per_second * 1e-9);
  for (const MemoryPeak& level : peaks.memory) {
    fmt::print("{:>20}: {:6.1f} GB/s read, {:6.1f} GB/s read and written again\n", level.name,
               level.read_per_second * 1e-9, level.update_per_second * 1e-9);
  }
  fmt::print("\n{:<54} {:>10} {:>10} {:>6}  {}\n", "", "takes", "floor", "share", "of one");
}

std::string table_line(const BenchLine& line) {
  const bool has_floor = line.floor_seconds > 0;
  return fmt::format(
      "{:<54} {:>10} {:>10} {:>6}  {}{}", line.name, duration(line.seconds),
      has_floor ? duration(line.floor_seconds) : "-",
      has_floor ? fmt::format("{:.0f} %", 100 * line.floor_seconds / line.seconds) : "-", line.unit,
      has_floor ? fmt::format("; bound by {}", line.bound) : "");
}

int failed(const std::string& what) {
  fmt::print(stderr, "machine_bench: {}\n", what);
  return 1;
}

// A line that is not a time is a bug of its loop.
int print_lines(const std::vector<BenchLine>& lines) {
  for (const BenchLine& line : lines) {
    fmt::print("{}\n", table_line(line));
    if (!(line.seconds >= 0 && line.seconds < 1)) return failed("no time: " + line.name);
  }
  std::fflush(stdout);
  return 0;
}

int run_bench(const BenchShape& shape) {
  const Result<SimdLevel> level = simd_level_from_environment();
  if (!level) return failed(level.error().message);
  auto files = bench_files(shape);
  if (!files) return failed(files.error().message);
  const MachinePeaks peaks = measure_peaks(*level, shape.hidden, shape.budget);
  print_peaks(peaks);
  int status = print_lines(bench_kernels(peaks, shape));
  status |= print_lines(bench_training(kernels_for(peaks.level), shape));
  status |= print_lines(bench_codec(shape));
  for (const auto& bench : {bench_messages, bench_storage}) {
    const auto more = bench(shape);
    if (!more) return failed(more.error().message);
    status |= print_lines(*more);
  }
  return status | print_lines(*files);
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  CLI::App app("times this machine in the loops of training, network and store", "machine_bench");
  gleaner::BenchShape shape;
  shape.folder = std::filesystem::temp_directory_path().string();
  bool is_quick = false;
  bool is_tiny = false;
  app.add_option("--hidden", shape.hidden, "width of the hidden layer")
      ->check(CLI::Range(gleaner::kLanes, gleaner::kHiddenMax));
  app.add_option("--folder", shape.folder, "where the storage figures write up to 6 GiB")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--quick", is_quick, "a few calls each");
  app.add_flag("--tiny", is_tiny, "on next to nothing, to see that all of it works");
  CLI11_PARSE(app, argc, argv);
  shape.hidden -= shape.hidden % gleaner::kLanes;
  if (is_quick) {
    shape.budget = 0.001;
    shape.step_batches = 2;
  }
  if (is_tiny) {
    shape = {.hidden = 48,
             .budget = 0,
             .folder = shape.folder,
             .stored_rows = 1'024,
             .file_bytes = 1 << 20,
             .layers = {512, 1'024, 2'048},
             .step_batches = 2};
  }
  return gleaner::run_bench(shape);
}
