#include "master/config/model_overrides.hpp"

namespace gleaner {

ModelConfig apply_overrides(ModelConfig recipe, const ModelOverrides& overrides) {
  for_each_model_field([&](const auto& field) {
    if (const auto& value = overrides.*field.override) recipe.*field.field = *value;
  });
  return recipe;
}

ModelOverrides all_overrides(const ModelConfig& model) {
  ModelOverrides overrides;
  for_each_model_field([&](const auto& field) { overrides.*field.override = model.*field.field; });
  return overrides;
}

}  // namespace gleaner
