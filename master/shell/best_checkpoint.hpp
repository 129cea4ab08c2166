// The checkpoint with the highest held-out P@1, kept beside the store of a run.
#pragma once

#include <string>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Keeps the checkpoint of `run`, which is in `folder`, as STORE.kept/best if no evaluated one
// before it was as good; returns whether it did. For the thread of the store.
Result<bool> keep_if_best(const HeldFolder& folder, RunStore& run);

// Where checkpoint `best` of `run` is kept; empty when STORE.kept/best is not it, but another run's
// or another checkpoint.
std::string kept_best(const std::string& store, RunStore& run, RoundIndex best);

}  // namespace gleaner
