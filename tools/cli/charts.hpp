// Curves drawn with characters, in a terminal. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/data/atomic_file.hpp"
#include "common/result.hpp"

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

// Pictures drawn by the program gnuplot. One thread at a time.

// `text` as a string constant for gnuplot, with every special character quoted.
std::string gnuplot_quoted(std::string_view text);

// Draws `commands` (without terminal and output) into `path`, as SVG or PNG by its ending. Sizes
// are in pixels. The file appears whole or not at all. kResources without gnuplot names the package
// to install.
Result<void> draw_with_gnuplot(const std::string& commands, const std::string& path, unsigned width,
                               unsigned height, AtomicFile::Existing existing);

}  // namespace gleaner
