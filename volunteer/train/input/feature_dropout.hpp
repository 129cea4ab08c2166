// Training examples with some of their features left out, so that no label is learned from a single
// one. Which are left out is a function of (seed, batch, position, feature); the others are scaled
// up, so that evaluation needs no correction. Plain storage, reused; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/model/model_config.hpp"

namespace gleaner {

class FeatureDropout {
 public:
  explicit FeatureDropout(const ModelConfig& config);

  // The batch's examples as training sees them, valid until the next call; `examples` themselves
  // when nothing is dropped.
  std::span<const ExampleView> apply(BatchIndex batch, std::span<const ExampleView> examples);

 private:
  std::uint64_t seed_;
  std::uint64_t threshold_;  // of 2^24
  float keep_scale_;
  std::vector<std::uint32_t> features_;
  std::vector<float> values_;
  std::vector<ExampleView> thinned_;
};

}  // namespace gleaner
