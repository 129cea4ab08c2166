#include "common/recipe.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

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
      for (const RecipeKind kind : {RecipeKind::kAuto, RecipeKind::kFast, RecipeKind::kBest})
        REQUIRE(validate(recipe(facts(points, labels), {.kind = kind}).model).ok());
    }
  }
}

TEST_CASE("recipe: few labels are trained whole, many are sampled", "[recipe]") {
  REQUIRE(recipe(facts(1000, 2'000)).model.sampling == Sampling::kAll);
  REQUIRE(recipe(facts(1000, 2'001)).model.sampling == Sampling::kLsh);
  for (const auto& [labels, active] :
       {std::pair{4'000u, 1'500u}, std::pair{100'000u, 1'000u}, std::pair{1'000'000u, 5'000u}}) {
    const ModelConfig config = recipe(facts(1000, labels)).model;
    REQUIRE(config.active_cap + config.random_negatives == active);
    REQUIRE(config.random_negatives == active / 10);
  }
}

TEST_CASE("recipe: rounds cut an epoch evenly and visit each row often enough", "[recipe]") {
  // 163 batches an epoch, which are fewer examples than rows: two epochs a round.
  const ModelConfig wide = recipe(facts(20'756, 52'946)).model;
  REQUIRE(wide.round_batches == 326);
  // 353 batches, of which 64 are enough: five rounds.
  const ModelConfig narrow = recipe(facts(45'100, 4'271)).model;
  REQUIRE(narrow.round_batches == 71);
  REQUIRE(RunPlan(narrow).round_count() == 5 * narrow.epochs);
  REQUIRE(recipe(facts(10, 4'271)).model.round_batches == 3);  // epochs of a batch
  // Beyond 500,000 examples a death costs much, and beyond 1,500,000 too much, whatever commits
  // take.
  const auto round_examples = [](std::uint32_t labels) {
    const ModelConfig model = recipe(facts(6'000'000, labels)).model;
    return std::uint64_t{model.round_batches} * model.batch_examples;
  };
  REQUIRE(round_examples(670'091) == Approx(500'000).epsilon(0.01));
  REQUIRE(round_examples(2'800'000) == Approx(1'500'000).epsilon(0.01));
  REQUIRE(round_examples(20'000'000) == Approx(1'500'000).epsilon(0.01));
}

TEST_CASE("recipe: short epochs share a round when the run has many", "[recipe]") {
  const DatasetFacts wide = facts(20'756, 52'946);
  const auto epochs_a_round = [&](std::uint32_t epochs, std::uint32_t batch_examples) {
    const ModelConfig model =
        recipe(wide, {.epochs = epochs, .batch_examples = batch_examples}).model;
    REQUIRE(model.epochs == epochs);
    REQUIRE(model.batch_examples == batch_examples);
    REQUIRE(validate(model).ok());
    return epochs_per_round(model);
  };
  // 52,946 examples are two and a half epochs, half of them one and a quarter. Four whole rounds
  // there are, or fewer where two volunteers' commits would be more than a fifth of their bytes.
  REQUIRE(epochs_a_round(1, 128) == 1);
  REQUIRE(epochs_a_round(2, 128) == 1);
  REQUIRE(epochs_a_round(3, 128) == 1);
  REQUIRE(epochs_a_round(4, 128) == 2);
  REQUIRE(epochs_a_round(5, 128) == 1);
  REQUIRE(epochs_a_round(6, 128) == 2);
  REQUIRE(epochs_a_round(8, 128) == 2);
  REQUIRE(epochs_a_round(9, 128) == 3);
  REQUIRE(epochs_a_round(11, 128) == 1);
  REQUIRE(epochs_a_round(15, 128) == 3);
  REQUIRE(epochs_a_round(15, 256) == 3);
  REQUIRE(epochs_a_round(16, 128) == 2);
  REQUIRE(epochs_a_round(300, 128) == 3);
}

TEST_CASE("recipe: a run has as many epochs as whole rounds", "[recipe]") {
  const DatasetFacts wide = facts(20'756, 52'946);
  REQUIRE(recipe(wide, {.kind = RecipeKind::kFast}).model.epochs == 4);
  REQUIRE(recipe(wide).model.epochs == 6);
  REQUIRE(recipe(wide, {.kind = RecipeKind::kBest}).model.epochs == 10);
  REQUIRE(recipe(facts(45'100, 4'271)).model.epochs == 5);
  // Points that are soon gone through do not make a run longer than that.
  REQUIRE(recipe(facts(1'000, 670'091)).model.epochs == 6);
  REQUIRE(RunPlan(recipe(facts(1'000, 670'091)).model).round_count() == 2);
}

TEST_CASE("recipe: rounds are as long as the commits' share asks for", "[recipe]") {
  const auto round_examples = [](std::uint64_t points, double share) {
    const ModelConfig model =
        recipe(facts(points, 200'000), {.epochs = 40, .commit_share = share}).model;
    return std::uint64_t{model.round_batches} * model.batch_examples;
  };
  // A quarter of a row's bytes an example: four examples a row for a tenth, one for two of them.
  REQUIRE(round_examples(1'000'000, 0.5) < round_examples(1'000'000, 0.2));
  REQUIRE(round_examples(1'000'000, 0.2) == Approx(200'000).epsilon(0.01));
  REQUIRE(round_examples(50'000, 0.2) == Approx(200'000).epsilon(0.01));
  REQUIRE(round_examples(1'000'000, 0.1) == Approx(450'000).epsilon(0.15));
  REQUIRE(round_examples(6'000'000, 0.01) == Approx(kRoundExamplesMax).epsilon(0.01));
  // The choice says what that comes to.
  for (const RecipeChoice& choice : recipe(facts(20'756, 52'946)).choices) {
    if (choice.field != "round_batches") continue;
    REQUIRE_THAT(choice.why, Catch::Contains("up to 14 % of two volunteers' bytes"));
  }
}

TEST_CASE("recipe: fast does less, best is wider and regularised", "[recipe]") {
  const DatasetFacts wide = facts(20'756, 52'946);
  const ModelConfig fast = recipe(wide, {.kind = RecipeKind::kFast}).model;
  const ModelConfig usual = recipe(wide).model;
  const ModelConfig best = recipe(wide, {.kind = RecipeKind::kBest}).model;
  REQUIRE(recipe(wide, {.kind = RecipeKind::kAuto}).model == usual);
  REQUIRE(fast.epochs < usual.epochs);
  REQUIRE(fast.active_cap + fast.random_negatives < usual.active_cap + usual.random_negatives);
  REQUIRE(best.epochs > usual.epochs);
  REQUIRE(best.hidden > usual.hidden);
  REQUIRE(best.dropout > 0.0F);
  REQUIRE(best.hash_bits < usual.hash_bits);
  REQUIRE(best.batch_examples > usual.batch_examples);
  REQUIRE(recipe(facts(45'100, 4'271), {.kind = RecipeKind::kBest}).model.batch_examples ==
          usual.batch_examples);
  // Where all neurons are trained, few points take more units, but small batches.
  const ModelConfig whole = recipe(facts(12'920, 983), {.kind = RecipeKind::kBest}).model;
  const ModelConfig long_whole = recipe(facts(45'100, 983), {.kind = RecipeKind::kBest}).model;
  REQUIRE(whole.hidden > long_whole.hidden);
  REQUIRE(whole.hidden == best.hidden);
  REQUIRE(whole.dropout > long_whole.dropout);
  REQUIRE(whole.batch_examples < long_whole.batch_examples);
  REQUIRE(long_whole.batch_examples == usual.batch_examples);
  // More points leave less time for each.
  const ModelConfig long_best = recipe(facts(250'000, 52'946), {.kind = RecipeKind::kBest}).model;
  REQUIRE(long_best.hidden > usual.hidden);
  REQUIRE(long_best.hidden < best.hidden);
  REQUIRE(long_best.dropout < best.dropout);
  REQUIRE(long_best.batch_examples < best.batch_examples);
  for (const ModelConfig& other :
       {long_best, recipe(facts(20'756, 4'271), {.kind = RecipeKind::kBest}).model,
        recipe(facts(20'756, 670'091), {.kind = RecipeKind::kBest}).model}) {
    REQUIRE(other.active_cap == other.random_negatives * (other.labels > 10'000 ? 1 : 9));
  }
  REQUIRE(best.active_cap + best.random_negatives > usual.active_cap + usual.random_negatives);
}

TEST_CASE("recipe: a lag that is given is kept", "[recipe]") {
  const DatasetFacts wide = facts(20'756, 52'946);
  REQUIRE(recipe(wide).model.staleness == 1);
  for (const std::uint32_t staleness : {0u, 16u}) {
    const RecipeRequest request{.kind = RecipeKind::kBest, .staleness = staleness};
    REQUIRE(recipe(wide, request).model.staleness == staleness);
    REQUIRE(recipe(wide, request).model.input_rate == recipe(wide).model.input_rate);
  }
  // Only where one label in thousands is true.
  REQUIRE(recipe(wide).model.epsilon > recipe(facts(12'920, 983)).model.epsilon);
  // A larger one is not there from the start.
  REQUIRE(recipe(wide).model.staleness_rise == 0);
  REQUIRE(recipe(wide, {.staleness = 2}).model.staleness_rise > 0);
}

TEST_CASE("recipe: every choice names a field once and gives a reason", "[recipe]") {
  for (const RecipeKind kind : {RecipeKind::kAuto, RecipeKind::kFast, RecipeKind::kBest}) {
    std::set<std::string> fields;
    for (const RecipeChoice& choice : recipe(facts(20'756, 52'946), {.kind = kind}).choices) {
      INFO(choice.field);
      REQUIRE(fields.insert(choice.field).second);
      REQUIRE_FALSE(choice.why.empty());
    }
    REQUIRE(fields.contains("hidden"));
    REQUIRE(fields.contains("staleness"));
  }
}

}  // namespace gleaner
