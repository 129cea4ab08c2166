// The baseline that training has to beat: every label's centroid in the space of all features, and
// for each test point the labels whose centroids are nearest by the cosine. No training, no hidden
// layer.
//
//   nearest_centroid_bench --train FILE --test FILE [--points N]
//   nearest_centroid_bench --tiny     on generated data, where it must find most labels
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <vector>

#include "common/data/nearest_centroids.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/model/precision.hpp"
#include "tests/bench/tiny_dataset.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kTopK = 5;
constexpr std::uint64_t kAllPoints = std::numeric_limits<std::uint64_t>::max();

int fail(const Error& error) {
  fmt::print(stderr, "nearest_centroid_bench: {}\n", error.message);
  return 1;
}

Result<Precision> run(const PackedDataset& train, const PackedDataset& test,
                      std::uint64_t points_max) {
  const auto centroids = NearestCentroids::open(train);
  if (!centroids) return centroids.error();
  std::vector<ExampleView> examples;
  for (std::uint64_t p = 0; p < std::min(points_max, test.points()); ++p) {
    examples.push_back(test.example(p));
  }
  const std::atomic<bool> is_stopping = false;
  const auto nearest = centroids->nearest(examples, kTopK, is_stopping);
  if (!nearest) return nearest.error();
  const InversePropensities propensities(count_labels(train), train.points());
  MetricSums sums(propensities);
  for (std::size_t p = 0; p < examples.size(); ++p) sums.add(examples[p].labels, (*nearest)[p]);
  const Precision precision = sums.precision();
  fmt::print("{}  of {}\n", to_text(precision), sums.evaluated());
  return precision;
}

int run_tiny() {
  const auto tiny = TinyDataset::make();
  if (!tiny) return fail(tiny.error());
  const auto precision = run((*tiny)->train(), (*tiny)->test(), kAllPoints);
  if (!precision) return fail(precision.error());
  return precision->at_1() > 0.5 ? 0 : 1;
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
  const auto precision = run(**train, **test, points);
  return precision ? 0 : fail(precision.error());
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  return gleaner::main_program(argc, argv);
}
