// A model configuration that suits a data set, with reasons. Pure; RECIPES.md explains each rule.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/model_config.hpp"

namespace gleaner {

struct DatasetFacts {
  std::uint64_t points = 0;
  std::uint32_t features = 0;
  std::uint32_t labels = 0;
  double labels_per_point = 0;
  double features_per_point = 0;
};

inline constexpr double kCommitFractionUsual = 0.2;
// The recipe makes no round longer than this to lower the commits' fraction of bytes: a volunteer's
// death costs the work of up to two rounds, and the master keeps their quantized activations in
// memory.
inline constexpr std::uint64_t kRoundExamplesMax = 1'500'000;

enum class RecipeKind : std::uint8_t {
  kAuto = 0,  // good results in little time
  kFast = 1,  // a first look: fewer epochs and active neurons
  kBest = 2,  // the most accurate known: a wide, regularised hidden layer and more epochs
};

struct RecipeRequest {
  RecipeKind kind = RecipeKind::kAuto;
  // Values set by the user that other values depend on.
  std::optional<std::uint32_t> epochs = std::nullopt;
  std::optional<std::uint32_t> batch_examples = std::nullopt;
  std::optional<std::uint32_t> staleness = std::nullopt;
  // 0: wide rows without a hidden layer; otherwise a hidden layer, whose width the recipe chooses.
  std::optional<std::uint32_t> hidden = std::nullopt;
  // Fraction of two volunteers' bytes that commits may take: the recipe makes rounds long enough
  // for it, up to kRoundExamplesMax. More volunteers send more units for the same commits.
  double commit_share = kCommitFractionUsual;
};

// The reason for a field's value.
struct RecipeChoice {
  std::string field;
  std::string why;
};

struct Recipe {
  ModelConfig model;
  std::vector<RecipeChoice> choices;  // in the order of ModelConfig
};

// A candidate that was trained before the run on a part of its data, and the quality of its answers
// to held-out examples (master/recipe/recipe_trials.hpp).
struct RecipeTrial {
  std::uint32_t hidden = 0;
  float wide_scale = 0;  // without a hidden layer
  float output_rate = 0;
  std::uint32_t epochs = 0;  // 0: as many as a run on that part
  double quality = 0;

  friend bool operator==(const RecipeTrial&, const RecipeTrial&) = default;
};

// A store keeps a run's trials among its settings. A malformed entry is left out.
inline constexpr const char* kRecipeTrialsKey = "recipe.trials";
std::string trials_text(std::span<const RecipeTrial> trials);
std::vector<RecipeTrial> stored_trials(const std::map<std::string, std::string>& settings);

// Decides every field except data_fingerprint and seed. Requires points, features and labels within
// a configuration's limits. The model is valid if the request's values are.
Recipe recipe(const DatasetFacts& facts, const RecipeRequest& request = {});

}  // namespace gleaner
