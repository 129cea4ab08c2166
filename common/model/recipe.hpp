// A model configuration that suits a data set, and why. Pure; common/model/RECIPES.md explains
// each rule.
#pragma once

#include <cstdint>
#include <optional>
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
// No round is made longer than these for the commits' share, however wide the layer: whoever dies
// takes the work of up to two rounds with it, and the master keeps their quantized activations in
// memory.
inline constexpr std::uint64_t kRoundExamplesMax = 1'500'000;

enum class RecipeKind : std::uint8_t {
  kAuto = 0,  // good results in little time
  kFast = 1,  // a first look: fewer epochs and active neurons
  kBest = 2,  // the most accurate known: a wide, regularised hidden layer and more epochs
};

struct RecipeRequest {
  RecipeKind kind = RecipeKind::kAuto;
  // Values that somebody has set by hand and others depend on.
  std::optional<std::uint32_t> epochs = std::nullopt;
  std::optional<std::uint32_t> batch_examples = std::nullopt;
  std::optional<std::uint32_t> staleness = std::nullopt;
  // 0: wide rows and no hidden layer; others: a hidden layer, of the width that the recipe chooses.
  std::optional<std::uint32_t> hidden = std::nullopt;
  // The fraction that commits may be of two volunteers' bytes: rounds are made long enough, up to
  // kRoundExamplesMax. More volunteers send more units for the same commits.
  double commit_share = kCommitFractionUsual;
};

// Why a field has its value.
struct RecipeChoice {
  std::string field;
  std::string why;
};

struct Recipe {
  ModelConfig model;
  std::vector<RecipeChoice> choices;  // in the order of ModelConfig
};

// Everything but data_fingerprint and seed is decided here. Requires points, features and labels
// within the limits of a configuration; the model is valid if the values of the request are.
Recipe recipe(const DatasetFacts& facts, const RecipeRequest& request = {});

}  // namespace gleaner
