// How JSON says what may be unknown: by null, so that nobody takes -1 for a measurement.
#pragma once

#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>

#include "common/model/precision.hpp"

namespace gleaner {

inline nlohmann::ordered_json known(double value) {
  return value < 0 || !std::isfinite(value) ? nlohmann::ordered_json()
                                            : nlohmann::ordered_json(value);
}

inline nlohmann::ordered_json known(std::unsigned_integral auto value) {
  return value;
}

// All figures, as members that `object` gets or keeps in their place.
inline void add_precision(nlohmann::ordered_json& object, const Precision& precision) {
  visit_precision(precision, [&](const char* name, double value) { object[name] = known(value); });
}

}  // namespace gleaner
