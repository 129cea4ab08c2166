// Small data with a structure that can be learned, made from a seed: each label has a few features
// of its own, each point one to three labels and features of theirs, plus noise.
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

// The set, mapped from a temporary file that is already unlinked. `part` tells training from test
// points of the same structure.
std::unique_ptr<PackedDataset> planted_data(const PlantedShape& shape, std::uint64_t seed,
                                            std::uint64_t part);

}  // namespace gleaner
