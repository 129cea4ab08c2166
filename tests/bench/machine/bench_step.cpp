#include "tests/bench/machine/bench_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "common/result.hpp"
#include "tests/bench/machine/bench_layer.hpp"
#include "tests/bench/machine/one_process_run.hpp"
#include "tools/dataset/dataset_synth_points.hpp"

namespace gleaner {
namespace {

constexpr double kLabelsPerPoint = 5;
constexpr double kFeaturesPerPoint = 30;
constexpr std::uint32_t kWarmUpSteps = 2;  // times `step_batches` batches
constexpr std::uint32_t kTimedSteps = 3;

// All points of the run, in memory, so that reading them is no part of a figure.
class StepPoints {
 public:
  explicit StepPoints(const StepRun& run)
      : points_(run.model.points), label_counts_(run.model.labels) {
    SynthOptions options;
    options.dimensions = {run.facts.features, run.facts.labels};
    options.labels_per_point = run.facts.labels_per_point;
    options.features_per_point = run.facts.features_per_point;
    const SyntheticPoints synthetic(options);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      synthetic.make(i, points_[i]);
      features_ += static_cast<double>(points_[i].features.size());
      for (const std::uint32_t label : points_[i].labels) ++label_counts_[label];
    }
  }

  [[nodiscard]] ExampleView operator[](std::uint64_t index) const {
    const Point& point = points_[index];
    return {point.labels, point.features, point.values};
  }

  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const { return label_counts_; }

  [[nodiscard]] double features_per_point() const {
    return features_ / static_cast<double>(points_.size());
  }

 private:
  std::vector<Point> points_;
  std::vector<std::uint32_t> label_counts_;
  double features_ = 0;
};

// Seconds of processor of an example.
struct StepTime {
  double output = 0;
  double input = 0;
};

// The middle of several passes: a run meets what the machine usually gives, not its best.
template <typename Value>
double middle(std::array<OneProcessRun::Report, kTimedSteps> reports, Value value) {
  std::sort(reports.begin(), reports.end(),
            [&](const auto& a, const auto& b) { return value(a) < value(b); });
  return value(reports[kTimedSteps / 2]);
}

StepTime time_steps(const StepRun& run, const StepPoints& points, std::uint32_t step_batches,
                    const Kernels& kernels, unsigned threads) {
  ThreadPool pool(threads);
  OneProcessRun training(
      run.model, [&](std::uint64_t point) { return points[point]; }, points.label_counts(), pool,
      kernels);
  std::array<OneProcessRun::Report, kTimedSteps> reports;
  BatchIndex next = kWarmUpSteps * step_batches;
  // The program's own points and configuration: a failure is a bug.
  const auto begun = training.begin();
  GLEANER_CHECK(begun.ok());
  const auto warmed = training.train(next);
  GLEANER_CHECK(warmed.ok());
  for (OneProcessRun::Report& report : reports) {
    const auto trained = training.train(next + step_batches);
    GLEANER_CHECK(trained.ok());
    report = *trained;
    next += step_batches;
  }
  const auto each = [](double OneProcessRun::Report::*seconds) {
    return [seconds](const OneProcessRun::Report& report) {
      return report.*seconds / static_cast<double>(report.examples);
    };
  };
  return {middle(reports, each(&OneProcessRun::Report::output_cpu_seconds)),
          middle(reports, each(&OneProcessRun::Report::input_cpu_seconds))};
}

}  // namespace

StepRun step_run(std::uint32_t hidden, std::uint32_t rows, std::uint32_t step_batches) {
  StepRun run;
  run.facts = {.points = 1,
               .features = kBenchFeatures,
               .labels = rows,
               .labels_per_point = kLabelsPerPoint,
               .features_per_point = kFeaturesPerPoint};
  // One batch more than are trained, so that no round ends; of as many examples as the recipe for
  // such a layer says.
  const std::uint32_t batches = (kWarmUpSteps + kTimedSteps) * step_batches + 1;
  run.facts.points =
      std::uint64_t{recipe(run.facts, {.hidden = hidden}).model.batch_examples} * batches;
  run.model = recipe(run.facts, {.epochs = 1, .hidden = hidden}).model;
  run.model.hidden = hidden;
  run.model.output_shards = kBenchShards;
  run.model.round_batches = batches;
  return run;
}

std::vector<BenchLine> bench_step(const Kernels& kernels, const BenchShape& shape,
                                  std::uint32_t rows) {
  const StepRun run = step_run(shape.hidden, rows, shape.step_batches);
  const StepPoints points(run);
  const unsigned processors = std::clamp(std::thread::hardware_concurrency(), 1u, kBenchShards);
  const StepTime all = time_steps(run, points, shape.step_batches, kernels, processors);
  const StepTime one = time_steps(run, points, shape.step_batches, kernels, 1);
  const auto line = [&](const char* what, const char* unit, double seconds) {
    return BenchLine{fmt::format("{}, layer of {} rows", what, rows), unit, seconds, 0, ""};
  };
  return {line("a whole step, all processors busy", "example", all.output),
          line("a whole step, one processor busy", "example", one.output),
          line("the input layer of a step", "feature of an example",
               one.input / points.features_per_point())};
}

}  // namespace gleaner
