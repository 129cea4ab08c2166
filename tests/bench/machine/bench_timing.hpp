// The processor time of a piece of work. Other programs change it only through caches and memory.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "common/time.hpp"

namespace gleaner {

inline double seconds_since(Instant start) {
  return static_cast<double>((monotonic_now() - start).count()) * 1e-6;
}

// Processor seconds of the process so far.
inline double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

// Seconds in the kernel for the process.
inline double kernel_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_stime.tv_usec);
}

// The least processor time of a call, over several calls that take about `budget` seconds in all.
template <typename Body>
double best_seconds(double budget, const Body& body) {
  double best = std::numeric_limits<double>::infinity();
  double spent = 0;
  for (int calls = 0; calls < 3 || spent < budget; ++calls) {
    const double start = processor_seconds();
    body();
    const double seconds = processor_seconds() - start;
    best = std::min(best, std::max(seconds, 1e-6));
    spent += seconds;
  }
  return best;
}

}  // namespace gleaner
