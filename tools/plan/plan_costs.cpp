#include "tools/plan/plan_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/limits.hpp"
#include "common/train/kernels.hpp"
#include "tools/bench/bench_step.hpp"
#include "tools/plan/plan_parts.hpp"

namespace gleaner {
namespace {

constexpr double kBudget = 0.01;  // seconds a figure
constexpr std::uint32_t kStoredRows = 16'384;

constexpr std::string_view kOfLayer = ", layer of ";
constexpr std::string_view kLayerLine = "fetch and update a row, layer of ";

struct CostLine {
  const char* name;
  double MachineCosts::*cost;
};

constexpr CostLine kLines[] = {
    {"visit a row", &MachineCosts::visit},
    {"look for a row's visits", &MachineCosts::scan},
    {"finish a gradient in a shard", &MachineCosts::finish},
    {"hash a query", &MachineCosts::query},
    {"hash a changed row anew, tables and all", &MachineCosts::rehash_row},
    {"keep, commit and hash a row", &MachineCosts::commit_row},
    {"encode a commit", &MachineCosts::encode_row},
    {"decode a commit", &MachineCosts::decode_row},
    {"input layer, commit a row", &MachineCosts::input_commit_row},
    {"pack quantized activations", &MachineCosts::pack_codes},
    {"unpack quantized activations", &MachineCosts::unpack_codes},
    {"pack a gradient", &MachineCosts::pack_gradient},
    {"add a packed gradient", &MachineCosts::add_gradient},
    {"pack activations", &MachineCosts::pack_activations},
    {"unpack activations", &MachineCosts::unpack_activations},
    {"code activations", &MachineCosts::code_activations},
    {"pack a unit gradient", &MachineCosts::pack_unit_gradient},
    {"unpack a unit gradient", &MachineCosts::unpack_unit_gradient},
    {"pass a message", &MachineCosts::message},
    {"pass a message's byte", &MachineCosts::message_byte},
    {"stage a commit, on disk", &MachineCosts::stage_row},
    {"fold a round, on disk, without the kernel", &MachineCosts::fold_row},
    {"stage and fold, without the kernel", &MachineCosts::store_row_program},
    {"write a small file", &MachineCosts::small_file_byte},
    {"write a large file", &MachineCosts::large_file_byte},
    {"read rows back", &MachineCosts::read_row},
};

Result<double> seconds_of(const std::vector<BenchLine>& lines, const std::string& name) {
  const auto line =
      std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.name == name; });
  if (line == lines.end()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there is no line '{}': measure again with this version's gleaner "
                             "bench --json",
                             name)};
  }
  if (!(line->seconds >= 0 && line->seconds < 1)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("line '{}': {} seconds cannot be", name, line->seconds)};
  }
  return line->seconds;
}

// The measured seconds of a whole step.
struct StepSeconds {
  double all_busy = 0;  // an example's
  double one_busy = 0;
  double feature = 0;  // of the input layer
};

Result<StepSeconds> step_of(const std::vector<BenchLine>& lines, const std::string& layer) {
  const Result<double> all = seconds_of(lines, "a whole step, all processors busy" + layer);
  const Result<double> one = seconds_of(lines, "a whole step, one processor busy" + layer);
  const Result<double> feature = seconds_of(lines, "the input layer of a step" + layer);
  for (const auto* figure : {&all, &one, &feature}) {
    if (!*figure) return figure->error();
  }
  return StepSeconds{*all, *one, *feature};
}

// Held against what the parts take by the plan's own formulas, so that these are right at least for
// the runs that were measured.
void add_steps(const std::vector<StepSeconds>& steps, MachineCosts& costs) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    MachineCosts::LayerRow& layer = costs.row[i];
    const StepRun run =
        step_run(costs.hidden, static_cast<std::uint32_t>(layer.rows), BenchShape().step_batches);
    PlanInput input;
    input.model = run.model;
    input.features_per_point = run.facts.features_per_point;
    input.labels_per_point = run.facts.labels_per_point;
    const double parts = step_seconds(input, costs);
    if (parts > 0) layer.whole = steps[i].all_busy / parts;
    if (steps[i].one_busy > 0) {
      layer.busy = std::max(1.0, steps[i].all_busy / steps[i].one_busy);
    }
    layer.feature = steps[i].feature;
  }
}

Error in_file(const std::string& what) {
  return {ErrorCode::kInvalidArgument, "not what gleaner bench --json prints: " + what};
}

}  // namespace

Result<MachineCosts> costs_of(const std::vector<BenchLine>& lines, std::uint32_t hidden) {
  MachineCosts costs;
  costs.hidden = hidden;
  for (const CostLine& line : kLines) {
    const Result<double> seconds = seconds_of(lines, line.name);
    if (!seconds) return seconds.error();
    costs.*line.cost = *seconds;
  }
  std::vector<StepSeconds> steps;
  for (const BenchLine& line : lines) {
    if (!line.name.starts_with(kLayerLine)) continue;
    const std::size_t layer = steps.size();
    const double rows = std::strtod(line.name.c_str() + kLayerLine.size(), nullptr);
    if (layer == costs.row.size() || rows <= (layer == 0 ? 0 : costs.row[layer - 1].rows)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("line '{}': three layers are wanted, ascending", line.name)};
    }
    const auto step = step_of(lines, line.name.substr(kLayerLine.size() - kOfLayer.size()));
    if (!step) return step.error();
    costs.row[layer].rows = rows;
    costs.row[layer].seconds = line.seconds;
    steps.push_back(*step);
  }
  if (steps.size() < costs.row.size()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("there are {} lines '{}N rows': three are wanted", steps.size(), kLayerLine)};
  }
  add_steps(steps, costs);
  return costs;
}

Result<MachineCosts> parse_costs(const std::string& json) {
  const auto report = nlohmann::json::parse(json, nullptr, false);
  if (!report.is_object()) return in_file("no JSON object");
  const auto hidden = report.find("hidden");
  if (hidden == report.end() || !hidden->is_number_unsigned() ||
      hidden->get<std::uint64_t>() < kLanes || hidden->get<std::uint64_t>() > kHiddenMax) {
    return in_file("'hidden' is no width");
  }
  const auto entries = report.find("lines");
  if (entries == report.end() || !entries->is_array()) return in_file("'lines' is no list");
  std::vector<BenchLine> lines;
  for (const auto& entry : *entries) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("seconds") || !entry["seconds"].is_number()) {
      return in_file("a line without 'name' and 'seconds'");
    }
    lines.push_back({entry["name"], "", entry["seconds"], 0, ""});
  }
  return costs_of(lines, hidden->get<std::uint32_t>());
}

Result<MachineCosts> read_costs(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error{ErrorCode::kNotFound, fmt::format("{}: cannot be read", file)};
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  Result<MachineCosts> costs = parse_costs(text);
  if (!costs) return Error{costs.error().code, fmt::format("{}: {}", file, costs.error().message)};
  return costs;
}

BenchShape quick_shape(std::uint32_t hidden, const std::string& folder) {
  return {.hidden = hidden, .budget = kBudget, .folder = folder, .stored_rows = kStoredRows};
}

Result<MachineCosts> measure_costs(const BenchShape& shape) {
  const Result<SimdLevel> level = simd_level_from_environment();
  if (!level) return level.error();
  const Kernels& kernels = kernels_for(*level);
  std::vector<BenchLine> lines;
  const auto add = [&](std::vector<BenchLine> more) {
    for (BenchLine& line : more) lines.push_back(std::move(line));
  };
  auto files = bench_files(shape);
  if (!files) return files.error();
  add(std::move(*files));
  add(bench_training(kernels, shape));
  MachinePeaks peaks;  // for floors, which nobody reads here
  peaks.level = *level;
  add(bench_hashing(peaks, shape));
  add(bench_codec(shape));
  for (const auto& bench : {bench_messages, bench_storage}) {
    auto more = bench(shape);
    if (!more) return more.error();
    add(std::move(*more));
  }
  return costs_of(lines, shape.hidden);
}

}  // namespace gleaner
