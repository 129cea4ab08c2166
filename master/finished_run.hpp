// The result of a run, read from its store.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "master/see/run_events.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// The run as a reader finds it under the name of its folder. kIdentity when the folder is not in
// its place, kCorrupt when what is there is not at the checkpoint of `run`, which wrote it.
Result<std::unique_ptr<RunStore>> read_whole(const RunStore& run, const HeldFolder& folder);

// Fills all fields but store, best_store, seconds and already. `run` is as read_whole() gives it.
Result<RunFinished> finished_run(const RunStore& written, const HeldFolder& folder);

}  // namespace gleaner
