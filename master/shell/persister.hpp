// Performs the core's storage tasks on a run's store. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "master/core/events.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

class Persister {
 public:
  // `store` outlives the persister. `wall_clock` gives seconds since 1970, for records only.
  // `on_fold` is called after every new checkpoint, `on_evaluation` after a recorded evaluation;
  // both between two tasks.
  Persister(RunStore& store, std::int64_t (*wall_clock)(),
            std::function<void(RoundIndex)> on_fold = {},
            std::function<void(RoundIndex)> on_evaluation = {});

  // Returns the event that answers the task. Nullopt when the task is a fold with more steps: it is
  // to be run again, after other tasks if these need not wait. StoreFull: the disk has no room,
  // nothing is lost, and the same task is to be run again. TaskFailed: the store's state is unknown
  // and the run ends; the next opening reads the store as it is.
  std::optional<Event> run(const StorageTask& task);

 private:
  std::optional<Event> run_task(const StageTask& task);
  std::optional<Event> run_task(const FoldTask& task);
  std::optional<Event> run_task(const ReadChunkTask& task);
  std::optional<Event> run_task(const RecordEvaluationTask& task);
  std::optional<Event> run_task(const SettleTask& task);
  // True when the round is folded.
  Result<bool> step_fold(const FoldTask& task, std::int64_t wall_seconds);

  // Adds the records to the accounts of earlier work.
  Result<void> add_to_accounts(const std::vector<AccountRecord>& records,
                               std::int64_t wall_seconds);

  RunStore& store_;
  // Accounts from before this process, of volunteers whose records are not final.
  std::map<KeyId, AccountRecord> earlier_;
  std::int64_t (*wall_clock_)();
  std::function<void(RoundIndex)> on_fold_;
  std::function<void(RoundIndex)> on_evaluation_;
  bool is_folding_ = false;
};

}  // namespace gleaner
