#include "master/label_share.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace gleaner {

TEST_CASE("votes: a mixture is the mean of both probabilities", "[votes]") {
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
