// A small run whose table entries are the codes of its weights and whose history fits its plan, as
// a real one's: for tests of what looks at all of that.
#pragma once

#include "storage/engine/memory_store.hpp"
#include "storage/run_store.hpp"

namespace gleaner::test {

// small_identity() with settings that repeat the model; `seed` tells runs apart.
RunIdentity sound_identity(std::uint64_t seed = 1);

// Stages every shard's commit of the open round `round`; parts as in stage_round.
Result<void> stage_sound_round(RunStore& run, RoundIndex round);

// Trains an empty store to `checkpoint`, gives it accounts and lease epochs, and stages the round
// after it.
Result<void> make_sound_run(std::unique_ptr<Store> store, RoundIndex checkpoint,
                            std::uint64_t seed = 1);

}  // namespace gleaner::test
