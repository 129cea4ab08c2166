#include "master/config/recipe_chosen.hpp"

namespace gleaner {

RecipeChosen recipe_chosen(const MasterConfig& config, const std::vector<RecipeChoice>& choices,
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

}  // namespace gleaner
