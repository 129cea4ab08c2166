#include <catch2/catch.hpp>
#include <cmath>

#include "tools/predict/ranking_quality.hpp"

namespace gleaner {
namespace {

// 10 + 6 + 2 + 1 + 1 + 0 occurrences: half of them are the first label's.
const std::vector<std::uint32_t> kCounts = {1, 10, 6, 2, 1, 0};

}  // namespace

TEST_CASE("quality: the head holds half of all occurrences, the tail the last tenth", "[quality]") {
  const FrequencyClasses classes(kCounts);
  CHECK(classes.of(1) == FrequencyClass::kHead);
  CHECK(classes.of(2) == FrequencyClass::kTorso);
  CHECK(classes.of(3) == FrequencyClass::kTorso);
  CHECK(classes.of(0) == FrequencyClass::kTail);
  CHECK(classes.of(5) == FrequencyClass::kTail);
  CHECK(classes.of(99) == FrequencyClass::kTail);
  CHECK(classes.extent(0).labels == 1);
  CHECK(classes.extent(1).points_max == 6);
  CHECK(classes.extent(1).points_min == 2);
  CHECK(classes.extent(2).labels == 3);
}

TEST_CASE("quality: nDCG and recall are those of the definitions", "[quality]") {
  const InversePropensities propensities(kCounts, 20);
  const FrequencyClasses classes(kCounts);
  Quality quality(propensities, classes);
  CHECK(quality.ndcg(0) < 0);
  const std::vector<std::uint32_t> labels = {1, 3, 5};
  const std::vector<std::uint32_t> ranked = {2, 1, 0, 4, 3};
  quality.add(labels, ranked);
  quality.add({}, ranked);
  CHECK(quality.points() == 1);
  const double ideal = 1 + 1 / std::log2(3.0) + 0.5;
  CHECK(quality.ndcg(0) == 0);
  CHECK(quality.ndcg(1) == Approx((1 / std::log2(3.0)) / ideal));
  CHECK(quality.ndcg(2) == Approx((1 / std::log2(3.0) + 1 / std::log2(6.0)) / ideal));
  CHECK(quality.recall(1) == Approx(1.0 / 3));
  CHECK(quality.recall(2) == Approx(2.0 / 3));
  CHECK(quality.by_class(0).true_labels == 1);
  CHECK(quality.by_class(0).hits[1] == 1);
  CHECK(quality.by_class(1).hits[1] == 0);
  CHECK(quality.by_class(1).hits[2] == 1);
  CHECK(quality.by_class(2).hits[2] == 0);
  CHECK(quality.precision().p[2] == Approx(0.4));
}

TEST_CASE("quality: a short ranking is a miss at the places that it lacks", "[quality]") {
  const InversePropensities propensities(kCounts, 20);
  const FrequencyClasses classes(kCounts);
  Quality quality(propensities, classes);
  const std::vector<std::uint32_t> labels = {1};
  const std::vector<std::uint32_t> ranked = {1};
  quality.add(labels, ranked);
  CHECK(quality.ndcg(2) == 1);
  CHECK(quality.recall(2) == 1);
  CHECK(quality.precision().p[2] == Approx(0.2));
}

}  // namespace gleaner
