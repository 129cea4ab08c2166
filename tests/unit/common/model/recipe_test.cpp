#include "common/model/recipe.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "common/model/run_plan.hpp"

namespace gleaner {
namespace {

// With labels that have 2 examples each unless `labels_per_point` is given.
DatasetFacts facts(std::uint64_t points, std::uint32_t labels, double labels_per_point = 0) {
  DatasetFacts result;
  result.points = points;
  result.features = 1000;
  result.labels = labels;
  result.labels_per_point =
      labels_per_point > 0 ? labels_per_point : 2.0 * labels / static_cast<double>(points);
  return result;
}

// The shape of EURLEX57K: 54 examples per label.
DatasetFacts narrow() {
  return facts(45'100, 4'271, 5.1);
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
  // 163 batches per epoch, which are fewer examples than rows: two epochs per round.
  const ModelConfig wide = recipe(facts(20'756, 52'946)).model;
  REQUIRE(wide.round_batches == 326);
  // 353 batches, of which 64 are enough: five rounds.
  const ModelConfig few_labels = recipe(narrow()).model;
  REQUIRE(few_labels.round_batches == 71);
  REQUIRE(RunPlan(few_labels).round_count() == 5 * few_labels.epochs);
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
  for (const RecipeKind kind : {RecipeKind::kFast, RecipeKind::kAuto, RecipeKind::kBest}) {
    const ModelConfig model = recipe(facts(20'756, 52'946), {.kind = kind}).model;
    REQUIRE(model.epochs % epochs_per_round(model) == 0);
    REQUIRE(RunPlan(model).round_count() >= 2);
  }
}

TEST_CASE("recipe: small data get small batches and enough updates", "[recipe]") {
  for (const std::uint64_t points : {500u, 4'880u, 20'756u, 45'100u}) {
    const ModelConfig model = recipe(facts(points, 159, 1)).model;
    INFO(points << " examples, batches of " << model.batch_examples << ", " << model.epochs
                << " epochs");
    REQUIRE(model.batch_examples >= 32);
    REQUIRE(model.batch_examples <= 128);
    REQUIRE(model.epochs >= 5);
    REQUIRE(RunPlan(model).batch_count() >= 1'200);
    REQUIRE(RunPlan(model).batch_count() < 2'500);
  }
  REQUIRE(recipe(facts(500, 159, 1)).model.batch_examples <
          recipe(facts(20'756, 159, 1)).model.batch_examples);
}

TEST_CASE("recipe: units are linear where labels have few examples", "[recipe]") {
  const ModelConfig rare = recipe(facts(560'198, 100'000, 1)).model;
  REQUIRE(rare.hidden_units == HiddenUnits::kLinear);
  REQUIRE(rare.hidden == 128);
  REQUIRE(rare.dropout == 0);
  REQUIRE(rare.batch_examples > 128);
  const ModelConfig common = recipe(facts(560'198, 1'000, 1)).model;
  REQUIRE(common.hidden_units == HiddenUnits::kRelu);
  REQUIRE(common.hidden == 128);
  REQUIRE(common.dropout == 0);
  // The recipe best is as wide as memory allows.
  const RecipeRequest best{.kind = RecipeKind::kBest};
  REQUIRE(recipe(facts(560'198, 1'000, 1), best).model.hidden == 1024);
  REQUIRE(recipe(facts(3'000'000, 314'284, 1), best).model.hidden == 512);
  REQUIRE(recipe(facts(30'000'000, 2'800'000, 1), best).model.hidden == 128);
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

TEST_CASE("recipe: fast does less than auto, and best more", "[recipe]") {
  for (const DatasetFacts& data : {facts(20'756, 52'946), narrow(), facts(560'198, 100'000, 1)}) {
    INFO(data.labels << " labels");
    const ModelConfig fast = recipe(data, {.kind = RecipeKind::kFast}).model;
    const ModelConfig usual = recipe(data).model;
    const ModelConfig best = recipe(data, {.kind = RecipeKind::kBest}).model;
    REQUIRE(recipe(data, {.kind = RecipeKind::kAuto}).model == usual);
    REQUIRE(fast.epochs <= usual.epochs);
    REQUIRE(usual.epochs < best.epochs);
    REQUIRE(fast.hidden <= usual.hidden);
    REQUIRE(usual.hidden < best.hidden);
    REQUIRE(usual.dropout < best.dropout);
    REQUIRE(fast.active_cap + fast.random_negatives < usual.active_cap + usual.random_negatives);
    REQUIRE(best.active_cap + best.random_negatives > usual.active_cap + usual.random_negatives);
    // Rates fall to the same fraction in a run of the usual length, and as fast in others.
    REQUIRE(fast.rate_decay <= usual.rate_decay);
    REQUIRE(usual.rate_decay < best.rate_decay);
    REQUIRE(recipe(data, {.epochs = 99}).model.rate_decay == usual.rate_decay);
  }
}

TEST_CASE("recipe: texts get wide rows, and few or dense features a hidden layer", "[recipe]") {
  DatasetFacts texts = facts(20'000, 50'000, 3);
  texts.features_per_point = 20;
  const ModelConfig wide = recipe(texts).model;
  REQUIRE(is_wide(wide));
  REQUIRE(validate(wide).ok());
  REQUIRE(wide.sampling == Sampling::kLsh);
  REQUIRE(RunPlan(wide).round_count() == wide.epochs);
  const ModelConfig fast = recipe(texts, {.kind = RecipeKind::kFast}).model;
  const ModelConfig best = recipe(texts, {.kind = RecipeKind::kBest}).model;
  REQUIRE(validate(fast).ok());
  REQUIRE(validate(best).ok());
  REQUIRE(fast.wide_list_weight > wide.wide_list_weight);
  REQUIRE(best.wide_list_weight < wide.wide_list_weight);
  REQUIRE(fast.wide_score_min > wide.wide_score_min);
  REQUIRE(best.wide_score_min < wide.wide_score_min);
  REQUIRE_FALSE(is_wide(recipe(texts, {.hidden = 256}).model));
  texts.features = 999;
  REQUIRE_FALSE(is_wide(recipe(texts).model));
  REQUIRE(is_wide(recipe(texts, {.hidden = 0}).model));
  texts.points = 600;
  texts.features = 100;
  REQUIRE_FALSE(is_wide(recipe(texts).model));
  REQUIRE(is_wide(recipe(texts, {.epochs = 2}).model));
  REQUIRE_FALSE(is_wide(recipe(texts, {.epochs = 60}).model));
  texts.features = 5'000;
  texts.features_per_point = 251;
  REQUIRE_FALSE(is_wide(recipe(texts).model));
}

TEST_CASE("recipe: a lag that is given is kept", "[recipe]") {
  const DatasetFacts wide = facts(20'756, 52'946);
  REQUIRE(recipe(wide).model.staleness == 1);
  for (const std::uint32_t staleness : {0u, 16u}) {
    const RecipeRequest request{.kind = RecipeKind::kBest, .staleness = staleness};
    REQUIRE(recipe(wide, request).model.staleness == staleness);
    REQUIRE(recipe(wide, request).model.input_rate == recipe(wide).model.input_rate);
  }
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
