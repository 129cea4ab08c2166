// The choices of a recipe as the console shows them, those that nobody has overridden.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/recipe.hpp"
#include "master/config/config.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

// The recipe's choices that nobody has overridden, as the console shows them. `model` is the model
// in effect: `config` over the recipe that made `choices`.
RecipeChosen recipe_chosen(const MasterConfig& config, const std::vector<RecipeChoice>& choices,
                           const ModelConfig& model);

// Inputs of a recipe: the figures of the data; and the keys that `config` fixes, with the hidden
// layer's width in effect.
DatasetFacts facts_of(const PackedDataset& train);
RecipeRequest recipe_request(const MasterConfig& config, std::optional<std::uint32_t> hidden);

}  // namespace gleaner
