// Results on their way to stdout.
#pragma once

#include <string>

#include "common/result.hpp"

namespace gleaner {

// Prints `text` to stdout at once; kIo when it cannot be written.
Result<void> print_out(const std::string& text);

}  // namespace gleaner
