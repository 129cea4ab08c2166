#include "common/recipe.hpp"

#include <algorithm>
#include <bit>

namespace gleaner {

ModelConfig recipe(const DatasetFacts& facts) {
  ModelConfig config;
  config.points = facts.points;
  config.features = facts.features;
  config.labels = facts.labels;
  config.output_shards = std::min<std::uint32_t>(16, facts.labels);
  return config;
}

}  // namespace gleaner
