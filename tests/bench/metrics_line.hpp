// How the benches print what an evaluation gave.
#pragma once

#include <fmt/format.h>

#include <string>

#include "master/tasks/metrics.hpp"

namespace gleaner {

inline std::string metrics_line(const Metrics& metrics) {
  return fmt::format("P@1 {:.4f} P@3 {:.4f} P@5 {:.4f} PSP@1 {:.4f} PSP@5 {:.4f} of {}",
                     metrics.p_at_1, metrics.p_at_3, metrics.p_at_5, metrics.psp_at_1,
                     metrics.psp_at_5, metrics.evaluated);
}

}  // namespace gleaner
