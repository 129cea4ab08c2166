// One run of the master from an opened store to its end: wires core, worker, persister, network,
// local volunteers, console and signals together. Construct, then run() once, on the main thread.
#pragma once

#include <functional>

#include "common/exit_code.hpp"
#include "master/config.hpp"
#include "master/progress.hpp"
#include "master/run_data.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Trains until the run is finished, stopped or has failed, and tells the console so.
ExitCode run_master(const MasterConfig& config, const RunData& data, RunStore& store,
                    Console& console);

}  // namespace gleaner
