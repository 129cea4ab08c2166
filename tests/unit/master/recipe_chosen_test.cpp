#include "master/recipe/recipe_chosen.hpp"

#include <catch2/catch.hpp>

#include "master/see/event_text.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;

const RecipeChosen::Value* find(const RecipeChosen& chosen, const std::string& key) {
  for (const RecipeChosen::Value& value : chosen.values) {
    if (value.key == key) return &value;
  }
  return nullptr;
}

RecipeChosen choose(const MasterConfig& config) {
  DatasetFacts facts;
  facts.points = 1000;
  facts.features = 200;
  facts.labels = 50'000;
  const Recipe proposed = recipe(facts, {config.recipe});
  return recipe_chosen(config, proposed.choices, effective_model(config, proposed.model).value());
}

}  // namespace

TEST_CASE("recipe chosen: every value that nobody has set is named with its reason",
          "[recipe_chosen]") {
  for (const RecipeKind kind : {RecipeKind::kAuto, RecipeKind::kFast, RecipeKind::kBest}) {
    MasterConfig config;
    config.recipe = kind;
    const RecipeChosen chosen = choose(config);
    REQUIRE(find(chosen, "model.hidden") != nullptr);
    REQUIRE(find(chosen, "model.staleness")->value == "1");
    REQUIRE(find(chosen, "model.sampling")->value == "lsh");
    REQUIRE_THAT(find(chosen, "model.sampling")->why, Contains("neurons"));
  }
}

TEST_CASE("recipe chosen: what a person has set is not the recipe's", "[recipe_chosen]") {
  MasterConfig config;
  config.recipe = RecipeKind::kBest;
  config.model.set(&ModelConfig::hidden, 64u);
  const RecipeChosen chosen = choose(config);
  REQUIRE(chosen.recipe == "best");
  REQUIRE(find(chosen, "model.hidden") == nullptr);
  REQUIRE(find(chosen, "model.epochs") != nullptr);
}

TEST_CASE("recipe chosen: people and programs are told the same", "[recipe_chosen]") {
  const RecipeChosen chosen{"fast", {{"model.hidden", "128", "less"}, {"model.k", "7", "more"}}};
  REQUIRE(event_line(chosen, {}) ==
          "Recipe fast for these data:\n  model.hidden = 128  less\n  model.k = 7         more");
  REQUIRE(event_json(chosen) == R"({"event":"recipe","recipe":"fast","values":[)"
                                R"({"key":"model.hidden","value":"128","why":"less"},)"
                                R"({"key":"model.k","value":"7","why":"more"}]})");
}

}  // namespace gleaner
