// Where a run stands, read from its store for the core that is to go on with it.
#pragma once

#include <span>

#include "common/result.hpp"
#include "master/core/core_config.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Takes lease epochs for the start of a master; writes nothing else.
Result<ResumePoint> read_resume_point(RunStore& run);

// The history's part of it: what the run learned up to `checkpoint`.
LearningSoFar learning_so_far(std::span<const HistoryRecord> history, RoundIndex checkpoint);

}  // namespace gleaner
