// Curves drawn with characters, in a terminal, and pictures out of gnuplot, which is asked for at
// run time. One thread at a time.
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
  bool is_logarithmic = false;  // both axes, for counts from 1; otherwise y is a share
  TextStyle style;
};

// Lines with the y axis (shares in percent, or counts) on the left and a legend below; empty when
// no curve has two points.
std::string curve_chart(const std::vector<Curve>& curves, const std::string& x_name,
                        const ChartLayout& layout);

// Whether `path` ends in .svg or .png: what can be drawn.
bool is_picture_name(std::string_view path);

// `text` as a string constant of gnuplot's, in which nothing has a meaning of its own.
std::string gnuplot_quoted(std::string_view text);

// Draws `commands` (without terminal and output) into `path`, of the given size in pixels, by its
// name's ending as SVG or PNG; the file appears whole or not at all. kResources names the package
// to install when there is no gnuplot.
Result<void> draw_with_gnuplot(const std::string& commands, const std::string& path, unsigned width,
                               unsigned height, AtomicFile::Existing existing);

}  // namespace gleaner
