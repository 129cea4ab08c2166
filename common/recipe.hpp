// A model configuration that suits a data set. Pure; the figures behind each rule are in
// volunteer/train/RECIPES.md.
#pragma once

#include <cstdint>

#include "common/model_config.hpp"

namespace gleaner {

struct DatasetFacts {
  std::uint64_t points = 0;
  std::uint32_t features = 0;
  std::uint32_t labels = 0;
  double labels_per_point = 0;
  double features_per_point = 0;
};

// Everything but data_fingerprint and seed is decided here. Requires points, features and labels
// within the limits of a configuration; the result is valid.
ModelConfig recipe(const DatasetFacts& facts);

}  // namespace gleaner
