// Small data with a learnable structure, from a seed: each label has a few features of its own;
// each example has one to three labels, some of their features, and noise.
#pragma once

#include <cstdint>
#include <memory>

#include "common/data/packed_dataset.hpp"

namespace gleaner {

struct PlantedShape {
  std::uint64_t points = 96;
  std::uint32_t features = 48;
  std::uint32_t labels = 40;
};

// The set, mapped from an unlinked temporary file. `part` distinguishes training and test examples
// of one structure.
std::unique_ptr<PackedDataset> planted_data(const PlantedShape& shape, std::uint64_t seed,
                                            std::uint64_t part);

}  // namespace gleaner
