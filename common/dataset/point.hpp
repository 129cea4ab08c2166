// One point of a data set on its way from or to a text file.
#pragma once

#include <cstdint>
#include <vector>

namespace gleaner {

// Numbers of features and labels; ids are below them.
struct Dimensions {
  std::uint32_t features = 0;
  std::uint32_t labels = 0;

  friend bool operator==(const Dimensions&, const Dimensions&) = default;
};

// Once parsed: labels and features ascend, none occurs twice, values are finite and not zero.
struct Point {
  std::vector<std::uint32_t> labels;
  std::vector<std::uint32_t> features;
  std::vector<float> values;  // parallel to features

  friend bool operator==(const Point&, const Point&) = default;
};

}  // namespace gleaner
