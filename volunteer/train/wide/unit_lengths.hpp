// Examples as wide rows see them: scaled to unit length, and without the features that the model
// does not know. Owns the scaled values; the views are valid as long as it and the examples are.
// One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"

namespace gleaner {

class UnitLengths {
 public:
  // `features`: of the model; the length is over these.
  UnitLengths(std::span<const ExampleView> examples, std::uint32_t features);
  UnitLengths(const UnitLengths&) = delete;
  UnitLengths& operator=(const UnitLengths&) = delete;

  // Without labels.
  [[nodiscard]] std::span<const ExampleView> views() const { return views_; }

 private:
  std::vector<float> values_;
  std::vector<ExampleView> views_;
};

}  // namespace gleaner
