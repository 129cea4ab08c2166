#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "tools/dataset/dataset_synth_points.hpp"

namespace gleaner {
namespace {

SynthOptions small() {
  SynthOptions options;
  options.dimensions = {2000, 300};
  return options;
}

std::vector<Point> make(const SynthOptions& options, std::uint64_t first, std::uint64_t count) {
  const SyntheticPoints source(options);
  std::vector<Point> points(count);
  for (std::uint64_t i = 0; i < count; ++i) source.make(first + i, points[i]);
  return points;
}

}  // namespace

TEST_CASE("synth: a point is a function of the seed and its index", "[synth]") {
  const std::vector<Point> points = make(small(), 0, 200);
  CHECK(make(small(), 150, 50) == std::vector<Point>(points.begin() + 150, points.end()));
  SynthOptions other = small();
  other.seed = 2;
  CHECK(make(other, 0, 200) != points);
}

TEST_CASE("synth: points are well formed at every size of the set", "[synth]") {
  for (const Dimensions dimensions : {Dimensions{1, 1}, Dimensions{2, 3}, Dimensions{2000, 300},
                                      Dimensions{1'000'000'000, 100'000'000}}) {
    SynthOptions options;
    options.dimensions = dimensions;
    REQUIRE(validate(options).ok());
    for (const Point& point : make(options, 0, 300)) {
      REQUIRE_FALSE(point.labels.empty());
      REQUIRE_FALSE(point.features.empty());
      REQUIRE(point.features.size() == point.values.size());
      REQUIRE(std::adjacent_find(point.labels.begin(), point.labels.end(),
                                 std::greater_equal<>()) == point.labels.end());
      REQUIRE(std::adjacent_find(point.features.begin(), point.features.end(),
                                 std::greater_equal<>()) == point.features.end());
      REQUIRE(point.labels.back() < dimensions.labels);
      REQUIRE(point.features.back() < dimensions.features);
      for (const float value : point.values) REQUIRE((value >= 0.1F && value < 1.5F));
    }
  }
}

TEST_CASE("synth: means are about those asked for", "[synth]") {
  SynthOptions options;
  options.dimensions = {1'000'000, 1'000'000};
  options.labels_per_point = 4;
  options.features_per_point = 40;
  options.zipf = 0;  // few labels are drawn twice
  double labels = 0;
  double features = 0;
  for (const Point& point : make(options, 0, 4000)) {
    labels += static_cast<double>(point.labels.size());
    features += static_cast<double>(point.features.size());
  }
  // Some labels and some features of a prototype are drawn twice.
  CHECK(labels / 4000 > 3.3);
  CHECK(labels / 4000 < 4.1);
  CHECK(features / 4000 > 28);
  CHECK(features / 4000 < 41);
}

TEST_CASE("synth: ranks follow Zipf's law", "[synth]") {
  const ZipfRanks ranks(1000, 1);
  Rng rng(1, Purpose::kTest);
  std::map<std::uint32_t, double> counts;
  constexpr int kDraws = 400'000;
  for (int i = 0; i < kDraws; ++i) ++counts[ranks.draw(rng)];
  double harmonic = 0;
  for (int rank = 1; rank <= 1000; ++rank) harmonic += 1.0 / rank;
  for (const std::uint32_t rank : {0u, 1u, 2u, 5u, 11u}) {
    const double expected = kDraws / harmonic / (rank + 1);
    CHECK(counts[rank] == Approx(expected).epsilon(0.05));
  }
  // The tail, where bins are wide: between a half and twice the law.
  double tail = 0;
  for (std::uint32_t rank = 500; rank < 600; ++rank) tail += counts[rank];
  CHECK(tail == Approx(kDraws / harmonic * 100 / 550).epsilon(0.1));
  CHECK(counts.rbegin()->first == 999);
}

TEST_CASE("synth: the structure can be learned", "[synth]") {
  // Naive: features vote for the labels they were seen with, rare features more. Far better than
  // the most frequent label, and it would not be if features told nothing of labels.
  const std::vector<Point> train = make(small(), 0, 6000);
  std::map<std::uint32_t, std::map<std::uint32_t, double>> votes;
  std::map<std::uint32_t, double> seen;
  std::map<std::uint32_t, int> frequency;
  for (const Point& point : train) {
    for (const std::uint32_t label : point.labels) ++frequency[label];
    for (const std::uint32_t feature : point.features) {
      ++seen[feature];
      for (const std::uint32_t label : point.labels) ++votes[feature][label];
    }
  }
  int best = 0;
  for (const auto& [label, count] : frequency) best = std::max(best, count);
  int hits = 0;
  const std::vector<Point> test = make(small(), 6000, 500);
  for (const Point& point : test) {
    std::map<std::uint32_t, double> scores;
    for (const std::uint32_t feature : point.features) {
      for (const auto& [label, count] : votes[feature]) {
        scores[label] += count * count / seen[feature] / frequency[label];
      }
    }
    const auto top =
        std::max_element(scores.begin(), scores.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    hits += top != scores.end() && std::count(point.labels.begin(), point.labels.end(), top->first);
  }
  const double by_frequency = static_cast<double>(best) / 6000;
  CHECK(by_frequency < 0.45);
  CHECK(hits / 500.0 > 0.75);
}

TEST_CASE("synth: options out of range are refused by flag", "[synth]") {
  const auto refused = [](auto change) {
    SynthOptions options;
    change(options);
    const Result<void> result = validate(options);
    return result.ok() ? std::string() : result.error().message.substr(0, 9);
  };
  CHECK(refused([](SynthOptions& o) { o.dimensions.labels = 0; }) == "--labels ");
  CHECK(refused([](SynthOptions& o) { o.dimensions.features = 1'000'000'001; }) == "--feature");
  CHECK(refused([](SynthOptions& o) { o.labels_per_point = 0.5; }) == "--labels-");
  CHECK(refused([](SynthOptions& o) { o.noise = std::nan(""); }) == "--noise n");
  CHECK(refused([](SynthOptions& o) { o.zipf = -1; }) == "--zipf -1");
  CHECK(refused([](SynthOptions&) {}).empty());
}

}  // namespace gleaner
