// The run's name for people: its store's folder.
#pragma once

#include <string>

#include "master/config/config.hpp"
#include "master/core/core_config.hpp"
#include "master/run_data.hpp"

namespace gleaner {

// Names the run as people see it: after its store's folder.
std::string run_title(const MasterConfig& config);

CoreConfig core_config(const MasterConfig& config, const RunData& data);

// The configured patience, or the patience of a run whose length the recipe chose.
Patience patience_of(const MasterConfig& config);

}  // namespace gleaner
