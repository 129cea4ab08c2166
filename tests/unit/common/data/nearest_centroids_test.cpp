#include "common/data/nearest_centroids.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "common/counter_random.hpp"
#include "common/data/packed_writer.hpp"
#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

std::unique_ptr<PackedDataset> pack(const TempFolder& folder, const std::vector<Point>& points,
                                    Dimensions dimensions) {
  const std::string path = folder.file("packed");
  auto writer = std::move(PackedWriter::create(path, false)).value();
  for (const Point& point : points) REQUIRE(writer->add(point).ok());
  REQUIRE(writer->finish(dimensions, {}, "", AtomicFile::Existing::kReplace).ok());
  return std::move(PackedDataset::open(path)).value();
}

std::vector<std::vector<std::uint32_t>> nearest(const PackedDataset& train,
                                                const std::vector<ExampleView>& examples,
                                                std::size_t top_k) {
  const std::atomic<bool> is_stopping = false;
  return NearestCentroids::open(train).value().nearest(examples, top_k, is_stopping).value();
}

ExampleView view_of(const Point& point) {
  return {point.labels, point.features, point.values};
}

// By the definition: all centroids at once.
std::vector<std::uint32_t> nearest_by_definition(const std::vector<Point>& train,
                                                 Dimensions dimensions, const Point& example,
                                                 std::size_t top_k) {
  std::vector<std::pair<double, std::uint32_t>> scored;
  for (std::uint32_t label = 0; label < dimensions.labels; ++label) {
    std::vector<double> centroid(dimensions.features);
    for (const Point& point : train) {
      if (std::ranges::find(point.labels, label) == point.labels.end()) continue;
      double squares = 0;
      for (const float value : point.values) squares += double{value} * value;
      for (std::size_t i = 0; i < point.features.size(); ++i) {
        centroid[point.features[i]] += point.values[i] / std::sqrt(squares);
      }
    }
    double squares = 0;
    for (const double value : centroid) squares += value * value;
    double product = 0;
    for (std::size_t i = 0; i < example.features.size(); ++i) {
      product += centroid[example.features[i]] * example.values[i];
    }
    scored.emplace_back(squares > 0 ? -product / std::sqrt(squares) : 0, label);
  }
  std::ranges::sort(scored);
  std::vector<std::uint32_t> labels;
  for (std::size_t i = 0; i < top_k; ++i) labels.push_back(scored[i].second);
  return labels;
}

}  // namespace

TEST_CASE("nearest centroids: examples count by their direction, labels by theirs", "[dataset]") {
  const TempFolder folder;
  // Label 0: (1, 0) and (0, 1), though the first is long. Label 1: (0, 1) three times. Label 2 has
  // no example.
  const auto train = pack(
      folder,
      {{{0}, {0}, {100}}, {{0, 1}, {1}, {1}}, {{1}, {1}, {2}}, {{1}, {1}, {3}}, {{}, {0}, {1}}},
      {2, 3});
  const std::vector<Point> points{{{}, {0}, {5}},          // label 0 alone has the feature
                                  {{}, {1}, {5}},          // straight at label 1
                                  {{}, {0, 1}, {1, 1}},    // straight at label 0
                                  {{}, {}, {}},            // near none: by number
                                  {{}, {1, 9}, {1, 100}},  // nobody knows feature 9
                                  {{}, {0}, {-1}}};        // away from label 0
  std::vector<ExampleView> examples;
  for (const Point& point : points) examples.push_back(view_of(point));
  REQUIRE(nearest(*train, examples, 3) ==
          std::vector<std::vector<std::uint32_t>>{
              {0, 1, 2}, {1, 0, 2}, {0, 1, 2}, {0, 1, 2}, {1, 0, 2}, {1, 2, 0}});
  REQUIRE(nearest(*train, examples, 9) == nearest(*train, examples, 3));
  REQUIRE(nearest(*train, examples, 1)[1] == std::vector<std::uint32_t>{1});
  REQUIRE(nearest(*train, {}, 1).empty());
}

TEST_CASE("nearest centroids: label by label gives what all centroids at once give", "[dataset]") {
  constexpr Dimensions kDimensions{30, 25};
  Rng rng(7, Purpose::kTest);
  const auto draw = [&](std::size_t count) {
    std::vector<Point> points(count);
    for (Point& point : points) {
      for (std::uint32_t id = 0; id < kDimensions.labels; ++id) {
        if (rng.chance(1, 12)) point.labels.push_back(id);
      }
      for (std::uint32_t id = 0; id < kDimensions.features; ++id) {
        if (!rng.chance(1, 4)) continue;
        point.features.push_back(id);
        point.values.push_back(signed_unit(rng.next()));
      }
    }
    return points;
  };
  const std::vector<Point> train = draw(200);
  const std::vector<Point> test = draw(50);
  const TempFolder folder;
  const auto packed = pack(folder, train, kDimensions);
  std::vector<ExampleView> examples;
  for (const Point& point : test) examples.push_back(view_of(point));
  const auto found = nearest(*packed, examples, 3);
  for (std::size_t i = 0; i < test.size(); ++i) {
    REQUIRE(found[i] == nearest_by_definition(train, kDimensions, test[i], 3));
  }
}

TEST_CASE("nearest centroids: the work is counted, and can be given up", "[dataset]") {
  const TempFolder folder;
  // Label 0 has features 0 and 1, label 1 has feature 1.
  const auto train =
      pack(folder, {{{0}, {0, 1}, {1, 1}}, {{0, 1}, {1}, {1}}, {{}, {2}, {1}}}, {3, 2});
  const Point both{{}, {0, 1}, {1, 1}};
  const Point other{{}, {2}, {1}};
  const std::vector<ExampleView> examples{view_of(both), view_of(other)};
  const NearestCentroids centroids = NearestCentroids::open(*train).value();
  // Three label entries of 4/3 features; three sums meet the first example, none the second.
  REQUIRE(centroids.work(examples).of_centroids == Approx(4));
  REQUIRE(centroids.work(examples).per_example == Approx(1.5));
  REQUIRE(centroids.work({}).per_example == 0);
  const std::atomic<bool> is_stopping = true;
  REQUIRE(centroids.nearest(examples, 1, is_stopping).error().code == ErrorCode::kShuttingDown);
}

TEST_CASE("nearest centroids: damaged training data is an error", "[dataset]") {
  const TempFolder folder;
  { const auto sound = pack(folder, {{{0}, {0}, {1}}, {{0}, {0}, {1}}}, {1, 1}); }
  std::string bytes = read_file(folder.file("packed"));
  bytes[250] ^= 1;  // within the first row
  write_file(folder.file("packed"), bytes);
  OpenOptions unchecked;
  unchecked.check_bytes_max = 0;
  const auto train = PackedDataset::open(folder.file("packed"), unchecked);
  REQUIRE(train.ok());
  REQUIRE(NearestCentroids::open(**train).error().code == ErrorCode::kCorrupt);
}

}  // namespace gleaner
