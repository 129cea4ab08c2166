// Keeps a line for each run that is complete, over restarts and after the run's master is gone.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner::volunteer {

// Adds a line to the folder's file; the oldest lines go. Empty `folder`: nothing is kept.
Result<void> keep_thanks(const std::string& folder, const std::string& master,
                         const std::string& line);

// The lines, oldest first, each with its master; none where there is no file.
std::vector<std::string> kept_thanks(const std::string& folder);

}  // namespace gleaner::volunteer
