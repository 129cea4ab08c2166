// Does the core's storage tasks on a run's store. One thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "master/core/events.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// The storage tasks that are not done yet, and which of them is next. In their order, but for one
// thing: a fold of a wide model takes long and is done in steps, and between two of them commits
// are staged and settled and rows read that came after it, so that nobody waits for a fold who need
// not. One thread at a time.
class StorageQueue {
 public:
  void push(StorageTask task) {
    tasks_.push_back(std::make_shared<const StorageTask>(std::move(task)));
  }

  [[nodiscard]] bool empty() const { return tasks_.empty(); }

  // Chooses the task to run; the same one until one of the calls below tells how it went. Requires
  // !empty().
  std::shared_ptr<const StorageTask> next();
  // It is done, and leaves the queue.
  void done();
  // It has more steps, and goes on when it is chosen again.
  void stepped();

 private:
  std::deque<std::shared_ptr<const StorageTask>> tasks_;
  bool is_chosen_ = false;
  std::size_t chosen_ = 0;
  bool has_begun_ = false;      // the head
  std::size_t in_between_ = 0;  // tasks chosen since the head's last step
};

class Persister {
 public:
  // `store` outlives the persister. `wall_clock` gives seconds since 1970, for records only.
  // `on_fold` is called with every new checkpoint, `on_evaluation` when an evaluation of it is on
  // record; both between two tasks.
  Persister(RunStore& store, std::int64_t (*wall_clock)(),
            std::function<void(RoundIndex)> on_fold = {},
            std::function<void(RoundIndex)> on_evaluation = {});

  // The event that answers the task; none when the task, a fold, has more steps and is to be run
  // again, at once or after tasks that need not wait for it. StoreFull: the disk has no room,
  // nothing is lost, and the same task is to be run again. TaskFailed: the store's state is unknown
  // afterwards, which ends the run; opening the store again reads what is really there.
  std::optional<Event> run(const StorageTask& task);

 private:
  std::optional<Event> run_task(const StageTask& task);
  std::optional<Event> run_task(const FoldTask& task);
  std::optional<Event> run_task(const ReadChunkTask& task);
  std::optional<Event> run_task(const RecordEvaluationTask& task);
  std::optional<Event> run_task(const SettleTask& task);
  // True when the round is folded.
  Result<bool> step_fold(const FoldTask& task, std::int64_t wall_seconds);

  // Adds these to what the volunteers did before.
  Result<void> add_to_accounts(const std::vector<AccountRecord>& records,
                               std::int64_t wall_seconds);

  RunStore& store_;
  // The accounts before this process of volunteers whose records are not final.
  std::map<KeyId, AccountRecord> earlier_;
  std::int64_t (*wall_clock_)();
  std::function<void(RoundIndex)> on_fold_;
  std::function<void(RoundIndex)> on_evaluation_;
  bool is_folding_ = false;
};

}  // namespace gleaner
