// The result of a run, read from its store.
#pragma once

#include <memory>

#include "common/result.hpp"
#include "master/see/run_events.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Opens the run by the name of its folder, as a reader would. kIdentity when the folder is not in
// its place; kCorrupt when its contents are not at the checkpoint of `run`, which wrote them.
Result<std::unique_ptr<RunStore>> read_whole(const RunStore& run, const HeldFolder& folder);

// Fills all fields but store, best_store, seconds and already. `written` is the run's own store.
Result<RunFinished> finished_run(const RunStore& written, const HeldFolder& folder);

}  // namespace gleaner
