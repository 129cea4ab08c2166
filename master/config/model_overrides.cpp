#include "master/config/model_overrides.hpp"

namespace gleaner {

ModelOverrides ModelOverrides::all(const ModelConfig& model) {
  ModelOverrides overrides;
  for_each_model_key([&](const auto& field) { overrides.set(field.member, model.*field.member); });
  return overrides;
}

ModelConfig ModelOverrides::applied_to(ModelConfig recipe) const {
  for_each_model_key([&](const auto& field) {
    if (has(field.name)) recipe.*field.member = values_.*field.member;
  });
  return recipe;
}

}  // namespace gleaner
