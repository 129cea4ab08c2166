#include "common/model/precision.hpp"

#include <fmt/format.h>

namespace gleaner {

std::string to_text(const Precision& precision, const char* plus_minus) {
  if (!precision.is_measured()) return "not evaluated";
  std::string text;
  visit_depths(precision, [&](const char*, const char* title, double value) {
    const bool is_first = text.empty();
    text += fmt::format("{}{} {:.4f}", is_first ? "" : "  ", title, value);
    if (is_first && precision.p_at_1_halfwidth >= 0) {
      text += fmt::format(" {} {:.4f}", plus_minus, precision.p_at_1_halfwidth);
    }
  });
  return text;
}

}  // namespace gleaner
