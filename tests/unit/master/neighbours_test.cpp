#include "master/neighbours.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "tests/sim/planted_data.hpp"
#include "tests/unit/master/listed_example.hpp"

namespace gleaner {
namespace {

// Features 0 to 4. Feature 0 is in every point, so it says nothing.
const std::vector<Example> kPoints = {{{1, 2}, {0, 1}, {1, 4}},
                                      {{2}, {0, 1, 2}, {1, 1, 1}},
                                      {{3}, {0, 3}, {9, 1}},
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
  const Neighbours one =
      neighbours_among({{{4}, {1}, {1}}, {{3}, {1}, {2}}, {{5}, {1}, {1}}, {{1}, {0}, {1}}}, 2);
  ThreadPool pool(1);
  const Example example{{}, {1}, {1}};
  const auto votes = one.votes(std::vector{example.view()}, pool);
  REQUIRE(votes[0].size() == 2);
  CHECK(votes[0][0].label == 3);  // equal shares: the smaller label first
  CHECK(votes[0][1].label == 4);
  CHECK(votes[0][1].share == Approx(0.5).margin(1e-6));
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
  const Neighbours packed(training_points(*train), 9);
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

}  // namespace gleaner
