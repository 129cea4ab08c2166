// Opens the store and runs the master on it. When the disk fills up, waits for room, opens the
// store again and goes on, all in one process.
#pragma once

#include "common/result.hpp"
#include "master/config/config.hpp"
#include "master/run_data.hpp"
#include "master/see/console.hpp"

namespace gleaner {

// Returns when the run is finished, stopped or has failed, after telling the console.
ExitCode open_and_run(MasterConfig config, const RunData& data, Console& console);

}  // namespace gleaner
