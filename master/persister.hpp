// Does the core's storage tasks on a run's store, one after the other. One thread at a time.
#pragma once

#include <map>
#include <utility>

#include "master/core/events.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

class Persister {
 public:
  // `store` outlives the persister. `earlier` are the accounts of the run's earlier processes, to
  // which this one's are added. `wall_clock` gives seconds since 1970, for records only.
  Persister(RunStore& store, const std::vector<VolunteerAccount>& earlier,
            std::int64_t (*wall_clock)());

  // The event that answers the task; TaskFailed when the store's state is unknown afterwards, which
  // ends the process: a restart reads what is really there.
  Event run(const StorageTask& task);

 private:
  Event run_task(const StageTask& task);
  Event run_task(const FoldTask& task);
  Event run_task(const ReadChunkTask& task);
  Event run_task(const RecordEvaluationTask& task);

  RunStore& store_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, VolunteerAccount> earlier_;
  std::int64_t (*wall_clock_)();
};

}  // namespace gleaner
