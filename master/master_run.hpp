// A run of the master from an opened store to its end: wires core, worker, persister, network,
// local volunteers, console and signals together. Main thread only.
#pragma once

#include "common/result.hpp"
#include "master/config/config.hpp"
#include "master/run_data.hpp"
#include "master/see/console.hpp"
#include "master/see/run_web.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Opens the store and runs the master on it. When the disk fills up, waits for room, opens the
// store again and goes on, all in one process.

// Returns when the run is finished, stopped or has failed, after telling the console.
ExitCode open_and_run(MasterConfig config, const RunData& data, Console& console);

// A run's store and its folder.
struct StoreInFolder {
  RunStore& run;
  const HeldFolder& folder;
};

// Trains until the run is finished, stopped or has failed, and tells the console. An error means
// that the disk filled up (kDiskFull or kStoreUnsure): when there is room, the store is to be
// opened and the run started again. `config` gets the port in use, so that volunteers find it there
// again. A store that is no longer in its place ends the run within seconds (ExitCode::kStore).
// `web` may be null; it is told how the run goes.
Result<ExitCode> run_master(MasterConfig& config, const RunData& data, const StoreInFolder& store,
                            Console& console, RunWeb* web);

// Whether room on the disk is all that is needed after the error.
inline bool needs_room(ErrorCode code) {
  return code == ErrorCode::kDiskFull || code == ErrorCode::kStoreUnsure;
}

}  // namespace gleaner
