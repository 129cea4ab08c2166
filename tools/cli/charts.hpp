// Curves drawn with characters, in a terminal. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/console/terminal.hpp"

namespace gleaner {

struct Curve {
  char mark = '*';
  Colour colour = Colour::kNone;
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascends
};

struct ChartLayout {
  std::size_t width = 72;  // columns of the plot itself
  std::size_t height = 10;
  bool is_logarithmic = false;  // both axes, for counts from 1; otherwise y is a fraction
  TextStyle style;
};

// Lines with the y axis (fractions in percent, or counts) on the left and a legend below; empty
// when no curve has two points.
std::string curve_chart(const std::vector<Curve>& curves, const std::string& x_name,
                        const ChartLayout& layout);

}  // namespace gleaner
