// Does the core's storage tasks on a run's store, one after the other. One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "master/core/events.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

class Persister {
 public:
  // `store` outlives the persister. `earlier` are the accounts of the run's earlier processes, to
  // which this one's are added. `wall_clock` gives seconds since 1970, for records only. `on_fold`
  // is called with every new checkpoint, between two tasks.
  Persister(RunStore& store, const std::vector<VolunteerAccount>& earlier,
            std::int64_t (*wall_clock)(), std::function<void(RoundIndex)> on_fold = {});

  // The event that answers the task. StoreFull: the disk has no room, nothing is lost, and the same
  // task is to be run again. TaskFailed: the store's state is unknown afterwards, which ends the
  // run; opening the store again reads what is really there.
  Event run(const StorageTask& task);

 private:
  Event run_task(const StageTask& task);
  Event run_task(const FoldTask& task);
  Event run_task(const ReadChunkTask& task);
  Event run_task(const RecordEvaluationTask& task);

  RunStore& store_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, VolunteerAccount> earlier_;
  std::int64_t (*wall_clock_)();
  std::function<void(RoundIndex)> on_fold_;
};

}  // namespace gleaner
