// A point written down in a test.
#pragma once

#include <cstdint>
#include <vector>

#include "common/dataset/packed_dataset.hpp"

namespace gleaner {

struct Example {
  std::vector<std::uint32_t> labels;
  std::vector<std::uint32_t> features;
  std::vector<float> values;

  [[nodiscard]] ExampleView view() const { return {labels, features, values}; }
};

}  // namespace gleaner
