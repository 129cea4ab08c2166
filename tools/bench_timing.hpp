// How long a piece of work takes when nothing else disturbs it.
#pragma once

#include <algorithm>
#include <limits>

#include "common/time.hpp"

namespace gleaner {

inline double seconds_since(Instant start) {
  return static_cast<double>((monotonic_now() - start).count()) * 1e-6;
}

// Least time of a call, over calls that take about `budget` seconds altogether, several at least.
template <typename Body>
double best_seconds(double budget, const Body& body) {
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  for (int calls = 0; calls < 3 || spent < budget; ++calls) {
    const Instant start = monotonic_now();
    body();
    const double seconds = seconds_since(start);
    best = std::min(best, std::max(seconds, 1e-6));
    spent += seconds;
  }
  return best;
}

}  // namespace gleaner
