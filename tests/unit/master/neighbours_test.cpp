#include "master/neighbours.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/sim/planted_data.hpp"

namespace gleaner {
namespace {

struct Example {
  std::vector<std::uint32_t> labels;
  std::vector<std::uint32_t> features;
  std::vector<float> values;

  [[nodiscard]] ExampleView view() const { return {labels, features, values}; }
};

// Features 0 to 4. Feature 0 is in every point, so it says nothing. With two labels a point no
// centroids vote.
const std::vector<Example> kPoints = {{{1, 2}, {0, 1}, {1, 4}},
                                      {{2}, {0, 1, 2}, {1, 1, 1}},
                                      {{3, 6, 7, 8, 9}, {0, 3}, {9, 1}},
                                      {{}, {0, 2, 3}, {1, 1, 2}}};

Neighbours neighbours_among(const std::vector<Example>& points, std::uint32_t count) {
  return Neighbours({static_cast<std::uint32_t>(points.size()), 5,
                     [&points](std::uint32_t point) { return points[point].view(); }},
                    count);
}

}  // namespace

TEST_CASE("neighbours: they vote by the square of their cosine", "[neighbours]") {
  const Neighbours all = neighbours_among(kPoints, 10);
  CHECK(all.points() == 4);
  CHECK_FALSE(all.have_centroids());
  ThreadPool pool(2);
  // Features 1 and 2 are in two of four points each, so equally rare: (1, 1) against (1, 0),
  // (1, 1) and, of features 2 and 3, which are as rare, (1, root of 2): cosines of root 1/2, 1
  // and root 1/6.
  const Example both{{}, {0, 1, 2}, {5, 3, 3}};
  const auto votes = all.votes(std::vector{both.view()}, pool);
  REQUIRE(votes.size() == 1);
  REQUIRE(votes[0].size() == 2);
  const double sum = 0.5 + 1 + 1.0 / 6;  // the one without labels takes its part
  CHECK(votes[0][0].label == 2);
  CHECK(votes[0][0].share == Approx(1.5 / sum).margin(1e-6));
  CHECK(votes[0][1].label == 1);
  CHECK(votes[0][1].share == Approx(0.5 / sum).margin(1e-6));
}

TEST_CASE("neighbours: neither a point's length nor features unknown to them change them",
          "[neighbours]") {
  const Neighbours all = neighbours_among(kPoints, 10);
  ThreadPool pool(1);
  const Example one{{}, {1, 3}, {1, 4}};
  const Example longer{{}, {1, 3}, {100, 400}};
  const Example more{{}, {1, 3, 7'000}, {1, 4, 2}};
  const auto votes = all.votes(std::vector{one.view(), longer.view(), more.view()}, pool);
  for (const auto& other : {votes[1], votes[2]}) {
    REQUIRE(other.size() == votes[0].size());
    for (std::size_t i = 0; i < other.size(); ++i) {
      CHECK(other[i].label == votes[0][i].label);
      CHECK(other[i].share == Approx(votes[0][i].share).margin(1e-6));
    }
  }
}

TEST_CASE("neighbours: only so many neighbours vote, of equally near ones the first",
          "[neighbours]") {
  const Neighbours one = neighbours_among(
      {{{4, 6}, {1}, {1}}, {{3, 7}, {1}, {2}}, {{5, 8}, {1}, {1}}, {{1, 9}, {0}, {1}}}, 2);
  ThreadPool pool(1);
  const Example example{{}, {1}, {1}};
  const auto votes = one.votes(std::vector{example.view()}, pool);
  REQUIRE(votes[0].size() == 4);
  CHECK(votes[0][0].label == 3);  // equal shares: the smaller label first
  CHECK(votes[0][1].label == 4);
  CHECK(votes[0][3].label == 7);
  CHECK(votes[0][3].share == Approx(0.5).margin(1e-6));
}

TEST_CASE(
    "neighbours: where points bear one label each, the labels' centroids are half of the votes",
    "[neighbours]") {
  const Neighbours all = neighbours_among(
      {{{1}, {1}, {1}}, {{1}, {2}, {1}}, {{2}, {1}, {1}}, {{2}, {3}, {1}}, {{1}, {1}, {1}}}, 10);
  CHECK(all.have_centroids());
  ThreadPool pool(1);
  // As near to feature 1, which is in three of five points, as to feature 2, which is in one.
  const auto value = [](double rarity) { return static_cast<float>(1 / (rarity * rarity)); };
  const Example both{{}, {1, 2}, {value(std::log(5.0 / 3)), value(std::log(5.0))}};
  const auto votes = all.votes(std::vector{both.view()}, pool);
  REQUIRE(votes[0].size() == 2);
  // Four points have a cosine of root 1/2, three of them bear label 1. Its centroid has feature 1
  // twice and feature 2 once, of which the roots count; the other's cosine is a half.
  const double first = std::pow((std::sqrt(2.0) + 1) / std::sqrt(6.0), 2);
  CHECK(votes[0][0].label == 1);
  CHECK(votes[0][0].share == Approx(0.5 * 0.75 + 0.5 * first / (first + 0.25)).margin(1e-6));
  CHECK(votes[0][1].label == 2);
  CHECK(votes[0][0].share + votes[0][1].share == Approx(1).margin(1e-6));
}

TEST_CASE("neighbours: only the nearest twenty centroids vote", "[neighbours]") {
  std::vector<Example> points(60);
  for (std::uint32_t p = 0; p < points.size(); ++p) {
    // Later labels have more of feature 2, so that they are less near to feature 1.
    points[p] = {{p}, {1, 2}, {1, 1.0F + static_cast<float>(p)}};
  }
  points.push_back({{60}, {0}, {1}});
  const Neighbours all = neighbours_among(points, 1);
  ThreadPool pool(1);
  const Example example{{}, {1}, {1}};
  const auto votes = all.votes(std::vector{example.view()}, pool);
  REQUIRE(votes[0].size() == 20);
  CHECK(votes[0][0].label == 0);
  CHECK(votes[0][0].share > 0.5);
  CHECK(votes[0][19].label == 19);
}

TEST_CASE("neighbours: a point that shares nothing with the training points has no votes",
          "[neighbours]") {
  const Neighbours all = neighbours_among(kPoints, 10);
  ThreadPool pool(1);
  const Example common{{}, {0}, {1}};
  const Example unseen{{}, {4}, {1}};
  const Example empty;
  const Example opposite{{}, {1}, {-1}};
  for (const auto& votes :
       all.votes(std::vector{common.view(), unseen.view(), empty.view(), opposite.view()}, pool)) {
    CHECK(votes.empty());
  }
}

TEST_CASE("neighbours: those of a packed set are those of its points, for any threads",
          "[neighbours]") {
  const auto train = planted_data({}, 7, 0);
  const auto test = planted_data({40, 48, 40}, 7, 1);
  const Neighbours packed(*train, 9);
  const Neighbours listed({static_cast<std::uint32_t>(train->points()), train->features(),
                           [&](std::uint32_t point) { return train->example(point); }},
                          9);
  CHECK(packed.points() == train->points());
  std::vector<ExampleView> examples;
  for (std::uint64_t i = 0; i < test->points(); ++i) examples.push_back(test->example(i));
  ThreadPool one(1);
  ThreadPool three(3);
  const auto votes = packed.votes(examples, one);
  CHECK(votes == listed.votes(examples, one));
  CHECK(votes == packed.votes(examples, three));
}

TEST_CASE("neighbours: a mixture is the mean of both probabilities", "[neighbours]") {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const std::vector<ScoredLabel> network = {{7, 2.0F}, {3, 0.0F}, {0, kNone}};
  const std::vector<LabelShare> votes = {{3, 0.9F}, {5, 0.6F}};
  const auto probability = [](float logit) { return 1 / (1 + std::exp(-double{logit})); };
  const auto mixed = mixed_with_votes(network, votes, 0.5F, 10);
  REQUIRE(mixed.size() == 3);
  CHECK(mixed[0].label == 3);
  CHECK(probability(mixed[0].logit) == Approx(0.7).margin(1e-5));
  CHECK(mixed[1].label == 7);
  CHECK(probability(mixed[1].logit) == Approx(probability(2.0F) / 2).margin(1e-5));
  CHECK(mixed[2].label == 5);
  CHECK(probability(mixed[2].logit) == Approx(0.3).margin(1e-5));
  CHECK(mixed_with_votes(network, votes, 0.5F, 1).size() == 1);
  // Of another weight the votes count for more or less, or alone.
  CHECK(probability(mixed_with_votes(network, votes, 0.25F, 1)[0].logit) ==
        Approx(0.75 * probability(2.0F)).margin(1e-5));
  CHECK(mixed_with_votes(network, votes, 1.0F, 2)[1].label == 5);
  // Certainty on both sides still has a logit.
  const auto certain = mixed_with_votes(std::vector<ScoredLabel>{{1, 90.0F}},
                                        std::vector<LabelShare>{{1, 1.0F}}, 0.5F, 1);
  CHECK(std::isfinite(certain[0].logit));
}

}  // namespace gleaner
