// Performs the core's storage tasks on a run's store. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "master/core/events.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Chooses the next of the waiting storage tasks. They run in order, with one exception. The fold of
// a wide model takes long and has steps: between two steps later tasks that stage or settle commits
// or read rows may run, so that they need not wait for the fold. One thread at a time.
class StorageQueue {
 public:
  void push(StorageTask task) {
    tasks_.push_back(std::make_shared<const StorageTask>(std::move(task)));
  }

  [[nodiscard]] bool empty() const { return tasks_.empty(); }

  // Chooses the task to run; the same task until done() or stepped() is called. Requires !empty().
  std::shared_ptr<const StorageTask> next();
  // The task is done, and leaves the queue.
  void done();
  // The task has more steps, and goes on when it is chosen again.
  void stepped();

 private:
  std::deque<std::shared_ptr<const StorageTask>> tasks_;
  bool is_chosen_ = false;
  std::size_t chosen_ = 0;
  bool has_begun_ = false;      // the first task
  std::size_t in_between_ = 0;  // tasks chosen since the head's last step
};

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
