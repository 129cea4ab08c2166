// Pictures out of gnuplot, which is asked for at run time. One thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "common/data/atomic_file.hpp"
#include "common/result.hpp"

namespace gleaner {

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
