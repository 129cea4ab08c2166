#include "tools/bench/bench_command.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace gleaner {

TEST_CASE("bench: a line tells time, floor, their ratio and what bounds it", "[bench]") {
  const std::string line = bench_table_line({"train rows", "visit", 40e-9, 10e-9, "main memory"});
  REQUIRE_THAT(line, Catch::Matchers::Contains("40.0 ns"));
  REQUIRE_THAT(line, Catch::Matchers::Contains("10.0 ns"));
  REQUIRE_THAT(line, Catch::Matchers::Contains("25 %"));
  REQUIRE_THAT(line, Catch::Matchers::EndsWith("visit; bound by main memory"));
  const std::string unbound = bench_table_line({"fold", "row", 2e-5, 0, ""});
  REQUIRE_THAT(unbound, Catch::Matchers::Contains("20.00 us"));
  REQUIRE_THAT(unbound, !Catch::Matchers::Contains("%"));
}

TEST_CASE("bench: JSON has null for a floor that is not known", "[bench]") {
  MachinePeaks peaks;
  peaks.flops_per_second = 1e11;
  peaks.memory = {{"main memory", 1024, 2e10, 1e10}};
  const auto report = nlohmann::json::parse(
      bench_json(peaks, 64, {{"a", "row", 2e-9, 1e-9, "additions"}, {"b", "row", 3e-9, 0, ""}}));
  REQUIRE(report["gleaner_json"] == 1);
  REQUIRE(report["verb"] == "bench");
  REQUIRE(report["simd"] == "scalar");
  REQUIRE(report["hidden"] == 64);
  REQUIRE(report["memory"][0]["update_per_second"] == 1e10);
  REQUIRE(report["lines"][0]["floor_seconds"] == 1e-9);
  REQUIRE(report["lines"][0]["bound"] == "additions");
  REQUIRE(report["lines"][1]["floor_seconds"].is_null());
  REQUIRE(report["lines"][1]["seconds"] == 3e-9);
}

TEST_CASE("bench: every loop runs and takes its time, and the store's folder is gone", "[bench]") {
  const std::string folder = std::filesystem::temp_directory_path() / "bench_command_test";
  std::filesystem::create_directories(folder);
  const BenchShape shape{.hidden = 48,
                         .budget = 0,
                         .folder = folder,
                         .stored_rows = 1'024,
                         .file_bytes = 1 << 20,
                         .layers = {512, 1'024, 2'048},
                         .step_batches = 2};
  MachinePeaks peaks;
  peaks.level = available_simd_levels().back();
  peaks.flops_per_second = 1e11;
  for (std::size_t i = 0; i <= kPickedRows; ++i)
    peaks.memory.push_back({"level", 1 << 17, 1e10, 1e10});
  std::vector<BenchLine> lines = bench_kernels(peaks, shape);
  for (BenchLine& line : bench_training(kernels_for(peaks.level), shape)) lines.push_back(line);
  for (BenchLine& line : bench_codec(shape)) lines.push_back(line);
  for (const auto& bench : {bench_files, bench_messages, bench_storage}) {
    const auto more = bench(shape);
    REQUIRE(more.ok());
    lines.insert(lines.end(), more->begin(), more->end());
  }
  REQUIRE(lines.size() == 46);
  for (const BenchLine& line : lines) {
    CAPTURE(line.name);
    // The rest of a step, after its parts, may be nothing beside other programs.
    const bool is_rest = line.name.starts_with("visit a row") ||
                         line.name.starts_with("fetch and") || line.name.starts_with("pass a");
    REQUIRE(line.seconds >= (is_rest ? 0 : 1e-12));
    REQUIRE(line.seconds < 1);
  }
  REQUIRE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
  REQUIRE_FALSE(bench_storage({.folder = folder}).ok());
  REQUIRE_FALSE(bench_files({.folder = folder}).ok());
}

}  // namespace gleaner
