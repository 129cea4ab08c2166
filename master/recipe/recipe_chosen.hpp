// The choices of a recipe as the console shows them, those that nobody has overridden.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/recipe.hpp"
#include "master/config/config.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

// The recipe's choices that nobody has overridden, as the console shows them. `model` is the model
// in effect: `config` over the recipe that made `choices`.
inline RecipeChosen recipe_chosen(const MasterConfig& config,
                                  const std::vector<RecipeChoice>& choices,
                                  const ModelConfig& model) {
  const std::map<std::string, std::string> values = effective_settings(config, model);
  RecipeChosen chosen{values.at("model.recipe"), {}};
  for (const RecipeChoice& choice : choices) {
    if (config.model.has(choice.field)) continue;
    const std::string key = "model." + choice.field;
    chosen.values.push_back({key, values.at(key), choice.why});
  }
  return chosen;
}

// Inputs of a recipe: the figures of the data; and the keys that `config` fixes, with the hidden
// layer's width in effect.
inline DatasetFacts facts_of(const PackedDataset& train) {
  const PackedSummary& summary = train.summary();
  DatasetFacts facts;
  facts.points = train.points();
  facts.features = train.features();
  facts.labels = train.labels();
  const auto points = static_cast<double>(train.points());
  facts.labels_per_point = static_cast<double>(summary.label_entries) / points;
  facts.features_per_point = static_cast<double>(summary.feature_entries) / points;
  return facts;
}

inline RecipeRequest recipe_request(const MasterConfig& config,
                                    std::optional<std::uint32_t> hidden) {
  const ModelOverrides& set = config.model;
  return {config.recipe,
          set.get(&ModelConfig::epochs),
          set.get(&ModelConfig::batch_examples),
          set.get(&ModelConfig::staleness),
          hidden,
          config.commit_share};
}

}  // namespace gleaner
