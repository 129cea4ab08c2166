// Does the master's work, one message at a time, and makes the replies: the bridge between the
// protocol and the training function.
//
// One thread calls execute(). With a hidden layer execute() does all the work, in loops on the
// pool. Without one it only queues units. Lanes, threads that call run_next(), perform them; two
// lanes never have units of one shard.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/shard_trainer.hpp"
#include "volunteer/core/events.hpp"
#include "volunteer/example_store.hpp"
#include "volunteer/input_work.hpp"
#include "volunteer/wide_work.hpp"

namespace gleaner::volunteer {

class Executor {
 public:
  // `pool` outlives the executor. kResources refuses a lease whose shard would exceed
  // `memory_bytes`.
  Executor(ThreadPool& pool, std::uint64_t memory_bytes, ExampleStoreOptions points = {});

  // The bytes of shards and examples at present.
  [[nodiscard]] std::uint64_t held_bytes() const;

  // Returns replies in the order in which they must leave. An error means that the master's message
  // does not fit or that memory ran out: the connection is to be closed.
  Result<std::vector<Message>> execute(const Work& work);

  // A unit that a lane has performed as far as possible.
  struct Ran {
    std::uint64_t generation = 0;  // of the Reset that it came after
    Result<std::vector<Message>> replies;
    std::uint64_t held_bytes = 0;
  };

  // Performs a unit and delivers its replies before another unit of the same shard can begin. False
  // when no unit can be performed at present. Any thread; `deliver` must not call the executor.
  bool run_next(const std::function<void(Ran)>& deliver);
  // As execute(), then run_next() until no unit can be performed.
  Result<std::vector<Message>> execute_all(const Work& work);

  // Increases whenever run_next() may have work again. Any thread.
  [[nodiscard]] std::uint32_t changes() const { return changes_; }

  // Waits until changes() differs from `seen`.
  void wait_for_change(std::uint32_t seen) const { changes_.wait(seen); }

  // Lets those look again that wait for a change. Any thread.
  void note_change();

  // Forbids or allows beginning units. Any thread.
  void let_begin(bool may_begin);
  // Performs nothing any more. Any thread.
  void stop();
  // Whether a lane has a unit. Any thread.
  [[nodiscard]] bool is_busy() const;

 private:
  using Lock = WideWork::Lock;

  [[nodiscard]] std::uint64_t shard_bytes() const;
  [[nodiscard]] std::uint64_t all_bytes() const;
  // Waits for the lanes, unless a lane calls it.
  void forget(Lock& lock, bool is_lane);
  Error starve(Lock& lock, bool is_lane);
  Result<std::vector<Message>> dispatch(const Work& work, Lock& lock);
  Result<std::vector<Message>> perform(const Message& message);
  Result<std::vector<Message>> run(const Reset& reset, Lock& lock);
  Result<std::vector<Message>> run(const LeaseGrant& grant);
  Result<std::vector<Message>> run(const ShardChunk& chunk);
  Result<std::vector<Message>> run(const ReleaseRequest& release);
  Result<std::vector<Message>> run(const Revoke& revoke);
  Result<std::vector<Message>> run(const TrainUnit& unit);
  Result<std::vector<Message>> run(const EvalUnit& unit);
  Result<std::vector<Message>> run(const InputUnit& unit);
  Result<std::vector<Message>> run(const Points& points);
  Result<std::vector<Message>> finish_load(const LeaseRef& lease);

  // The trainer of the shard's layer.
  [[nodiscard]] LeasedShards& trainer_of(const LeaseRef& lease);
  // Estimated bytes of the loaded shard, without the weights of wide rows.
  [[nodiscard]] std::uint64_t bytes_of(const LeaseRef& lease) const;
  [[nodiscard]] Error does_not_fit(const LeaseRef& lease) const;

  ThreadPool& pool_;
  const std::uint64_t memory_bytes_;
  mutable std::mutex mutex_;  // guards everything without a hidden layer; otherwise `wide_`
  ExampleStore points_;
  InputWork input_;
  std::unique_ptr<ShardTrainer> trainer_;  // output shards over hidden units
  std::unique_ptr<WideWork> wide_;         // or output shards without any
  ModelConfig model_;
  std::uint64_t generation_ = 0;
  std::map<ShardId, std::uint32_t> chunks_missing_;
  std::atomic<bool> may_begin_{true};
  std::atomic<std::uint32_t> changes_{0};
};

}  // namespace gleaner::volunteer
