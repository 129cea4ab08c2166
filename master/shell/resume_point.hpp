// The state of a run, read from its store for the core that goes on with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/result.hpp"
#include "master/core/core_config.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Takes lease epochs for this start of the master; writes nothing else. `settled` comes from
// settle_staged().
Result<ResumePoint> read_resume_point(RunStore& run, std::vector<SettledRound> settled);

// To be called before read_resume_point(). Settles what an earlier process left staged. A round
// whose fold that process had decided is folded. With a hidden layer the rest is dropped, because
// the gradients of an unfinished round are gone and every shard is needed again for them. Without
// one, commits that count are kept and returned, as far as the next checkpoint that is to be
// evaluated. `evaluate_every_epochs`: as in CoreConfig; none without a test set. `on_fold` is
// called before the fold, `on_damage` when a staged part cannot be read, so that its round is
// trained again.
Result<std::vector<SettledRound>> settle_staged(RunStore& run,
                                                std::optional<std::uint32_t> evaluate_every_epochs,
                                                const std::function<void(RoundIndex)>& on_fold,
                                                const std::function<void(const Error&)>& on_damage);

// The run's learning up to `checkpoint`, according to its history.
LearningSoFar learning_so_far(std::span<const RoundRecord> history, RoundIndex checkpoint);

}  // namespace gleaner
