// The middle of some values. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/check.hpp"

namespace gleaner {

// For an even number of values it is the upper one of the two in the middle. Requires at least one.
inline double median(std::vector<double> values) {
  GLEANER_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace gleaner
