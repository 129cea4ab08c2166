#include "master/config/recipe_chosen.hpp"

namespace gleaner {
namespace {

bool is_set_by_hand(const MasterConfig& config, const std::string& name) {
  bool is_set = false;
  for_each_model_field([&](const auto& field) {
    if (field.name == name) is_set = (config.model.*field.override).has_value();
  });
  return is_set;
}

}  // namespace

RecipeChosen recipe_chosen(const MasterConfig& config, const std::vector<RecipeChoice>& choices,
                           const ModelConfig& model) {
  const std::map<std::string, std::string> values = effective_settings(config, model);
  RecipeChosen chosen{values.at("model.recipe"), {}};
  for (const RecipeChoice& choice : choices) {
    if (is_set_by_hand(config, choice.field)) continue;
    const std::string key = "model." + choice.field;
    chosen.values.push_back({key, values.at(key), choice.why});
  }
  return chosen;
}

}  // namespace gleaner
