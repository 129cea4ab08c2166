#include "common/recipe.hpp"

#include <catch2/catch.hpp>

#include "common/run_plan.hpp"

namespace gleaner {
namespace {

DatasetFacts facts(std::uint64_t points, std::uint32_t labels) {
  DatasetFacts result;
  result.points = points;
  result.features = 1000;
  result.labels = labels;
  return result;
}

}  // namespace

TEST_CASE("recipe: it is valid for data of any shape", "[recipe]") {
  for (const std::uint64_t points : {1ull, 100ull, 50'000ull, 1ull << 33}) {
    for (const std::uint32_t labels : {1u, 2u, 15u, 2'000u, 2'001u, 670'091u, 100'000'000u}) {
      INFO(points << " points, " << labels << " labels");
      REQUIRE(validate(recipe(facts(points, labels))).ok());
    }
  }
}

TEST_CASE("recipe: few labels are trained whole, many are sampled", "[recipe]") {
  REQUIRE(recipe(facts(1000, 2'000)).sampling == Sampling::kAll);
  REQUIRE(recipe(facts(1000, 2'001)).sampling == Sampling::kLsh);
  for (const auto& [labels, active] :
       {std::pair{4'000u, 1'500u}, std::pair{100'000u, 1'000u}, std::pair{1'000'000u, 5'000u}}) {
    const ModelConfig config = recipe(facts(1000, labels));
    REQUIRE(config.active_cap + config.random_negatives == active);
    REQUIRE(config.random_negatives == active / 10);
  }
}

TEST_CASE("recipe: rounds cut an epoch evenly and visit each row often enough", "[recipe]") {
  // 163 batches an epoch; 18,531 examples visit each of 52,946 rows 350 times.
  const ModelConfig wide = recipe(facts(20'756, 52'946));
  REQUIRE(wide.round_batches == 163);
  // 353 batches, of which 64 are enough: five rounds.
  const ModelConfig narrow = recipe(facts(45'100, 4'271));
  REQUIRE(narrow.round_batches == 71);
  REQUIRE(RunPlan(narrow).rounds_per_epoch() == 5);
  REQUIRE(recipe(facts(10, 4'271)).round_batches == 1);
}

}  // namespace gleaner
