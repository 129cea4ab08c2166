// What there is to say of a run at its end, from its store.
#pragma once

#include "common/result.hpp"
#include "master/console/progress_events.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// All but store, best_store, seconds and already.
Result<RunFinished> finished_run(RunStore& run);

}  // namespace gleaner
