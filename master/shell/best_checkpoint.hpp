// The checkpoint with the highest held-out P@1, kept beside the store of a run.
#pragma once

#include <optional>
#include <string>

#include "common/ids.hpp"
#include "common/result.hpp"
#include "master/core/learning_so_far.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// For one life of the run on one store, whose thread it is used on. Both outlive it.
class BestCheckpoint {
 public:
  BestCheckpoint(const HeldFolder& folder, RunStore& run) : folder_(folder), run_(run) {}

  // Keeps the run's checkpoint as STORE.kept/best if no earlier evaluation was as good. Returns
  // whether it did. Call it after each evaluation: only the first call reads the history.
  Result<bool> keep_if_best();

 private:
  const HeldFolder& folder_;
  RunStore& run_;
  std::optional<LearningSoFar> learning_;  // up to the last call; none before the first
};

// The folder of the kept checkpoint `best` of `run`; empty when STORE.kept/best holds another one.
std::string kept_best(const std::string& store, RunStore& run, RoundIndex best);

}  // namespace gleaner
