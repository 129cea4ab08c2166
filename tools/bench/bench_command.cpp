#include "tools/bench/bench_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "common/limits.hpp"
#include "common/result.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"

namespace gleaner {
namespace {

struct BenchFlags {
  BenchShape shape;
  bool json = false;
  bool quick = false;
};

constexpr const char* kFooter =
    "Times are the best of many calls on one thread; GLEANER_SIMD chooses the instructions. The\n"
    "floor is the arithmetic or the bytes of one, whichever takes longer at the machine's peak. "
    "Rows\n"
    "picked: half of them, at random, in ascending order, each fetched ahead, as training wants "
    "them\n"
    "of a wide layer.\n\n"
    "Examples:\n"
    "  gleaner bench\n"
    "  gleaner bench --hidden 512 --json\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage.";

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

int run_bench(BenchFlags flags) {
  const Result<SimdLevel> level = simd_level_from_environment();
  if (!level) {
    fmt::print(stderr, "gleaner bench: {}\n", level.error().message);
    return static_cast<int>(ExitCode::kUsage);
  }
  if (flags.quick) {
    flags.shape.budget = 0.001;
    flags.shape.step_batches = 2;
  }
  const auto failed = [](const Error& error) {
    fmt::print(stderr, "gleaner bench: {}\n", error.message);
    return static_cast<int>(ExitCode::kFailure);
  };
  auto files = bench_files(flags.shape);
  if (!files) return failed(files.error());
  const MachinePeaks peaks = measure_peaks(*level, flags.shape.hidden, flags.shape.budget);
  if (!flags.json) print_peaks(peaks);
  std::vector<BenchLine> lines;
  const auto add = [&](std::vector<BenchLine> more) {
    for (BenchLine& line : more) {
      if (!flags.json) fmt::print("{}\n", bench_table_line(line));
      lines.push_back(std::move(line));
    }
    std::fflush(stdout);
  };
  add(bench_kernels(peaks, flags.shape));
  add(bench_training(kernels_for(peaks.level), flags.shape));
  add(bench_codec(flags.shape));
  for (const auto& bench : {bench_messages, bench_storage}) {
    auto more = bench(flags.shape);
    if (!more) return failed(more.error());
    add(std::move(*more));
  }
  add(std::move(*files));
  return flags.json ? report_on_store(print_out(bench_json(peaks, flags.shape.hidden, lines))) : 0;
}

}  // namespace

std::string bench_table_line(const BenchLine& line) {
  const bool has_floor = line.floor_seconds > 0;
  return fmt::format(
      "{:<54} {:>10} {:>10} {:>6}  {}{}", line.name, duration(line.seconds),
      has_floor ? duration(line.floor_seconds) : "-",
      has_floor ? fmt::format("{:.0f} %", 100 * line.floor_seconds / line.seconds) : "-", line.unit,
      has_floor ? fmt::format("; bound by {}", line.bound) : "");
}

std::string bench_json(const MachinePeaks& peaks, std::uint32_t hidden,
                       const std::vector<BenchLine>& lines) {
  Json report;
  report["hidden"] = hidden;
  report["simd"] = simd_level_name(peaks.level);
  report["flops_per_second"] = peaks.flops_per_second;
  report["memory"] = Json::array();
  for (const MemoryPeak& level : peaks.memory) {
    report["memory"].push_back({{"name", level.name},
                                {"bytes", level.bytes},
                                {"read_per_second", level.read_per_second},
                                {"update_per_second", level.update_per_second}});
  }
  report["lines"] = Json::array();
  for (const BenchLine& line : lines) {
    Json entry{{"name", line.name}, {"unit", line.unit}, {"seconds", line.seconds}};
    entry["floor_seconds"] = nullptr;
    entry["bound"] = nullptr;
    if (line.floor_seconds > 0) {
      entry["floor_seconds"] = line.floor_seconds;
      entry["bound"] = line.bound;
    }
    report["lines"].push_back(std::move(entry));
  }
  return json_document("bench", "this machine", report);
}

void add_bench_command(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<BenchFlags>();
  flags->shape.folder = std::filesystem::temp_directory_path().string();
  CLI::App* command =
      app.add_subcommand("bench", "time this machine in the loops of training, network and store");
  command->add_option("--hidden", flags->shape.hidden, "width of the hidden layer")
      ->capture_default_str()
      ->check([](const std::string& text) {
        const unsigned long width = std::strtoul(text.c_str(), nullptr, 10);
        const bool fits = width >= kLanes && width <= kHiddenMax && width % kLanes == 0;
        return fits ? std::string()
                    : fmt::format("the width is a multiple of {} up to {}", kLanes, kHiddenMax);
      });
  command->add_option("--folder", flags->shape.folder, "where the storage figures write")
      ->capture_default_str()
      ->check(CLI::ExistingDirectory);
  command->add_flag("--quick", flags->quick, "a few calls each, to see that all of it works");
  command->add_flag("--json", flags->json, "one JSON object instead of the table");
  command->footer(kFooter);
  command->callback([flags, &exit_status] { exit_status = run_bench(*flags); });
}

}  // namespace gleaner
