#include "tools/plan/plan_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tools/bench/bench_command.hpp"
#include "tools/bench/bench_step.hpp"
#include "tools/plan/plan_parts.hpp"

namespace gleaner {
namespace {

// Small, so that it is quick.
BenchShape small_shape(const std::string& folder) {
  BenchShape shape = quick_shape(48, folder);
  shape.budget = 0;
  shape.stored_rows = 1'024;
  shape.file_bytes = 1 << 20;
  shape.step_batches = 2;
  shape.layers = {512, 1'024, 2'048};
  return shape;
}

std::string folder_of_test() {
  const std::string folder = std::filesystem::temp_directory_path() / "plan_costs_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

TEST_CASE("plan costs: what this machine is measured to take is complete", "[plan]") {
  const std::string folder = folder_of_test();
  const auto costs = measure_costs(small_shape(folder));
  REQUIRE(costs.ok());
  REQUIRE(costs->hidden == 48);
  REQUIRE(costs->visit >= 0);
  REQUIRE(costs->query > 0);
  REQUIRE(costs->row[0].rows == 512);
  REQUIRE(costs->row[2].rows == 2'048);
  REQUIRE(costs->row[1].whole > 0);
  REQUIRE(costs->message > 0);
  REQUIRE(costs->fold_row > 0);
  REQUIRE(costs->store_row_program >= 0);
  REQUIRE(costs->large_file_byte > 0);
  REQUIRE(std::filesystem::is_empty(folder));
}

TEST_CASE("plan costs: those of a file are those of its lines", "[plan]") {
  const std::string folder = folder_of_test();
  const BenchShape shape = small_shape(folder);
  MachinePeaks peaks;
  peaks.level = available_simd_levels().back();
  std::vector<BenchLine> lines = bench_training(kernels_for(peaks.level), shape);
  for (BenchLine& line : bench_hashing(peaks, shape)) lines.push_back(line);
  for (BenchLine& line : bench_codec(shape)) lines.push_back(line);
  for (const auto& bench : {bench_files, bench_messages, bench_storage}) {
    const auto more = bench(shape);
    REQUIRE(more.ok());
    lines.insert(lines.end(), more->begin(), more->end());
  }
  const std::string json = bench_json(peaks, 48, lines);
  const auto costs = parse_costs(json);
  REQUIRE(costs.ok());
  REQUIRE(costs->hidden == 48);
  REQUIRE(costs->visit == lines[0].seconds);
  REQUIRE(costs->read_row == lines.back().seconds);
  for (const MachineCosts::LayerRow& layer : costs->row) {
    // The run that the steps were timed on is planned to take what it took.
    const auto measured = [&](const std::string& name) {
      const auto line = std::find_if(lines.begin(), lines.end(), [&](const BenchLine& l) {
        return l.name == fmt::format("{}, layer of {} rows", name, layer.rows);
      });
      REQUIRE(line != lines.end());
      return line->seconds;
    };
    const StepRun run = step_run(48, static_cast<std::uint32_t>(layer.rows), 2);
    PlanInput input;
    input.model = run.model;
    input.features_per_point = run.facts.features_per_point;
    input.labels_per_point = run.facts.labels_per_point;
    REQUIRE(layer.whole * step_seconds(input, *costs) ==
            Approx(measured("a whole step, all processors busy")));
    REQUIRE(layer.busy >= 1);
    REQUIRE(layer.feature == measured("the input layer of a step"));
  }

  std::vector<BenchLine> two_layers = lines;
  std::erase_if(two_layers, [](const BenchLine& l) { return l.name.ends_with("1024 rows"); });
  REQUIRE_FALSE(parse_costs(bench_json(peaks, 48, two_layers)).ok());
  // As an earlier version printed it.
  std::vector<BenchLine> steps_in_parts = lines;
  std::erase_if(steps_in_parts, [](const BenchLine& l) { return l.name.starts_with("a whole"); });
  const auto earlier = parse_costs(bench_json(peaks, 48, steps_in_parts));
  REQUIRE_FALSE(earlier.ok());
  REQUIRE_THAT(earlier.error().message,
               Catch::Matchers::Contains("measure again with this version's gleaner bench"));
  lines.pop_back();
  const auto missing = parse_costs(bench_json(peaks, 48, lines));
  REQUIRE_FALSE(missing.ok());
  REQUIRE_THAT(missing.error().message, Catch::Matchers::Contains("'read rows back'"));
}

TEST_CASE("plan costs: a file of something else is refused by name", "[plan]") {
  const std::string file = folder_of_test() + "/costs.json";
  for (const std::string text :
       {"", "[]", "{}", R"({"hidden": 128})", R"({"hidden": 0, "lines": []})",
        R"({"hidden": 128, "lines": [1]})",
        R"({"hidden": 128, "lines": [{"name": "visit a row"}]})",
        R"({"hidden": 128, "lines": [{"name": "visit a row", "seconds": -1}]})"}) {
    std::ofstream(file) << text;
    const auto costs = read_costs(file);
    REQUIRE_FALSE(costs.ok());
    REQUIRE_THAT(costs.error().message, Catch::Matchers::StartsWith(file + ": "));
  }
  REQUIRE_FALSE(read_costs(file + ".none").ok());
}

}  // namespace gleaner
