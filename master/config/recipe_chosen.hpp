// The choices of a recipe as the console shows them, those that nobody has overridden.
#pragma once

#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/recipe.hpp"
#include "master/config/config.hpp"
#include "master/console/progress_events.hpp"

namespace gleaner {

// `model` is the one in effect: `config` over the recipe that made `choices`.
RecipeChosen recipe_chosen(const MasterConfig& config, const std::vector<RecipeChoice>& choices,
                           const ModelConfig& model);

}  // namespace gleaner
