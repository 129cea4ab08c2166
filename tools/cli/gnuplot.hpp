// Pictures drawn by the program gnuplot. One thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "common/data/atomic_file.hpp"
#include "common/result.hpp"

namespace gleaner {

// `text` as a string constant for gnuplot, with every special character quoted.
std::string gnuplot_quoted(std::string_view text);

// Draws `commands` (without terminal and output) into `path`, as SVG or PNG by its ending. Sizes
// are in pixels. The file appears whole or not at all. kResources without gnuplot names the package
// to install.
Result<void> draw_with_gnuplot(const std::string& commands, const std::string& path, unsigned width,
                               unsigned height, AtomicFile::Existing existing);

}  // namespace gleaner
