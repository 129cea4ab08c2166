// What training has to beat: every label's centroid in the space of all features, and for each test
// point the labels whose centroids are nearest by the cosine. No training, no hidden layer.
//
//   nearest_centroid_bench --train FILE --test FILE [--points N]
//   nearest_centroid_bench --tiny     on generated data, where it must find most labels
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/dataset/open_or_pack.hpp"
#include "tests/bench/metrics_line.hpp"
#include "tests/bench/tiny_dataset.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kTopK = 5;
constexpr std::uint64_t kAllPoints = std::numeric_limits<std::uint64_t>::max();

// Centroids of unit length, by feature.
class Centroids {
 public:
  explicit Centroids(const PackedDataset& train)
      : of_feature_(train.features()), scores_(train.labels()) {
    std::vector<std::unordered_map<std::uint32_t, double>> sums(train.labels());
    for (std::uint64_t p = 0; p < train.points(); ++p) {
      const ExampleView example = train.example(p);
      const double scale = 1 / length(example.values);
      for (const std::uint32_t label : example.labels) {
        for (std::size_t i = 0; i < example.features.size(); ++i) {
          sums[label][example.features[i]] += scale * example.values[i];
        }
      }
    }
    for (std::uint32_t label = 0; label < sums.size(); ++label) {
      double squares = 0;
      for (const auto& [feature, value] : sums[label]) squares += value * value;
      if (squares == 0) continue;
      for (const auto& [feature, value] : sums[label]) {
        of_feature_[feature].push_back({label, static_cast<float>(value / std::sqrt(squares))});
      }
    }
  }

  // The nearest first.
  std::vector<std::uint32_t> nearest(const ExampleView& example) {
    std::fill(scores_.begin(), scores_.end(), 0.0F);
    for (std::size_t i = 0; i < example.features.size(); ++i) {
      for (const Entry& entry : of_feature_[example.features[i]]) {
        scores_[entry.label] += entry.value * example.values[i];
      }
    }
    std::vector<std::uint32_t> labels(scores_.size());
    std::iota(labels.begin(), labels.end(), 0U);
    const std::size_t count = std::min(kTopK, labels.size());
    std::partial_sort(
        labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(count), labels.end(),
        [&](auto a, auto b) { return std::pair(-scores_[a], a) < std::pair(-scores_[b], b); });
    labels.resize(count);
    return labels;
  }

 private:
  struct Entry {
    std::uint32_t label;
    float value;
  };

  static double length(std::span<const float> values) {
    const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
    return squares > 0 ? std::sqrt(squares) : 1;
  }

  std::vector<std::vector<Entry>> of_feature_;
  std::vector<float> scores_;
};

int fail(const Error& error) {
  fmt::print(stderr, "nearest_centroid_bench: {}\n", error.message);
  return 1;
}

Metrics run(const PackedDataset& train, const PackedDataset& test, std::uint64_t points_max) {
  Centroids centroids(train);
  const InversePropensities propensities(count_labels(train), train.points());
  MetricSums sums(propensities);
  for (std::uint64_t p = 0; p < std::min(points_max, test.points()); ++p) {
    const ExampleView example = test.example(p);
    sums.add(example.labels, centroids.nearest(example));
  }
  const Metrics metrics = sums.metrics();
  fmt::print("{}\n", metrics_line(metrics));
  return metrics;
}

int run_tiny() {
  const auto tiny = TinyDataset::make();
  if (!tiny) return fail(tiny.error());
  const Metrics metrics = run((*tiny)->train(), (*tiny)->test(), kAllPoints);
  return metrics.p_at_1 > 0.5 ? 0 : 1;
}

int main_program(int argc, char** argv) {
  std::string train_file;
  std::string test_file;
  std::uint64_t points = kAllPoints;
  bool tiny = false;
  CLI::App app("The precision of the nearest label centroid in the space of all features.");
  app.add_option("--train", train_file);
  app.add_option("--test", test_file);
  app.add_option("--points", points, "test points that are judged, the first of the file");
  app.add_flag("--tiny", tiny);
  CLI11_PARSE(app, argc, argv);
  if (tiny) return run_tiny();
  const auto train = open_or_pack(train_file);
  if (!train) return fail(train.error());
  const auto test = open_or_pack(test_file);
  if (!test) return fail(test.error());
  if ((*test)->features() > (*train)->features()) {
    return fail({ErrorCode::kInvalidData,
                 fmt::format("{} has {} features, {} {}", test_file, (*test)->features(),
                             train_file, (*train)->features())});
  }
  run(**train, **test, points);
  return 0;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  return gleaner::main_program(argc, argv);
}
