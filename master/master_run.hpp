// One run of the master from an opened store to its end: wires core, worker, persister, network,
// local volunteers, console and signals together. Construct, then run() once, on the main thread.
#pragma once

#include "common/result.hpp"
#include "master/config/config.hpp"
#include "master/run_data.hpp"
#include "master/see/console.hpp"
#include "master/see/run_web.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// A run's store with the folder that it is in.
struct StoreInFolder {
  RunStore& run;
  const HeldFolder& folder;
};

// Trains until the run is finished, stopped or has failed, and tells the console so. An error means
// that the disk filled up (kDiskFull or kStoreUnsure): the store is to be opened again when there
// is room, and the run to be run again on it. Once it listens, `config` names the port in use, so
// that volunteers find it there again. A store that is not in its place any more ends the run
// within seconds (ExitCode::kStore). `web`, when there is one, is told how the run goes.
Result<ExitCode> run_master(MasterConfig& config, const RunData& data, const StoreInFolder& store,
                            Console& console, RunWeb* web);

// True for the errors after which room on the disk is all that is needed.
inline bool needs_room(ErrorCode code) {
  return code == ErrorCode::kDiskFull || code == ErrorCode::kStoreUnsure;
}

}  // namespace gleaner
