// The work of a run without a hidden layer: shards that are lent, and units of them. A thread, the
// lane, takes a unit and performs it, beside other lanes that have units of other shards. Units of
// a shard are performed in their order, one at a time. One that lacks examples gives its lane back
// until they have come, and goes on where it was.
//
// Everything here requires the owner's mutex to be held. Where a lock is passed, it is that
// mutex's, and is given up while a lane computes or while somebody waits for lanes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/wide/wide_trainer.hpp"
#include "schema/messages.hpp"
#include "volunteer/example_store.hpp"
#include "volunteer/wide_batches.hpp"

namespace gleaner::volunteer {

class WideWork {
 public:
  using Lock = std::unique_lock<std::mutex>;
  using Replies = std::vector<Message>;

  // A run of this model. `mutex` is the owner's, `gate` and `points` outlive this; as many units
  // are begun at once as there are `lanes`. Prepared batches take `batch_bytes` at most.
  WideWork(const ModelConfig& model, std::mutex& mutex, PauseGate& gate, ExampleStore& points,
           unsigned lanes, std::uint64_t batch_bytes);
  // Requires that no lane has a unit.
  ~WideWork() = default;
  WideWork(const WideWork&) = delete;
  WideWork& operator=(const WideWork&) = delete;

  [[nodiscard]] WideTrainer& trainer() { return trainer_; }

  // Each returns replies in the order in which they must leave.
  Result<Replies> run(const TrainUnit& unit);
  Result<Replies> run(const EvalUnit& unit);
  Result<Replies> run(const Points& points);
  // A unit that has begun is finished first, others are dropped.
  Result<Replies> run(const ReleaseRequest& release);
  // A unit that has begun stops, and says nothing any more.
  void run(const Revoke& revoke);

  // The shard is lent: units of an earlier lease stop.
  void begin_lease(const LeaseRef& lease) { drop_units(lease); }

  // Stops all units; nothing waits any more. Lanes that have one give it back soon.
  void stop();
  // Waits until they have. By one thread alone, which may then end this.
  void wait_for_lanes(Lock& lock);
  // Stops all units, and holds nothing any more.
  void forget();

  // Performs a unit as far as it can be now, and returns its replies; nullopt when there is none
  // that can be. Called by lanes.
  std::optional<Result<Replies>> run_next(Lock& lock);

  // Lanes that have a unit.
  [[nodiscard]] unsigned busy() const { return busy_; }

  // Taken by shards, and by lanes while they train.
  [[nodiscard]] std::uint64_t shard_bytes() const;

  [[nodiscard]] std::uint64_t batch_bytes() const { return batches_.memory_bytes(); }

 private:
  using Unit = std::variant<TrainUnit, EvalUnit>;

  // The units of a shard; the first may have begun.
  struct Queue {
    LeaseRef lease;
    std::deque<Unit> units;
    std::deque<std::uint64_t> numbers;  // of the units, in the order in which they came
    bool is_on_lane = false;
    std::unique_ptr<WideRound> round;  // of a first unit that trains and has begun; for its lane
    float factor = 1;                  // of its rates
    std::uint64_t compute_us = 0;      // that it has taken
    bool is_to_be_released = false;    // when the first unit is done
    // Shared with the lane.
    std::atomic<BatchIndex> next{0};
    std::atomic<std::uint64_t> round_bytes{0};
    std::atomic<bool> is_stopped{false};

    [[nodiscard]] bool has_begun() const { return is_on_lane || round != nullptr; }

    // The batch that is next, if the first unit trains.
    [[nodiscard]] std::optional<BatchIndex> next_batch() const;
    void pop();
  };

  Result<Replies> queue(const LeaseRef& lease, Unit unit);
  // Unless they are of a later lease.
  void drop_units(const LeaseRef& lease);
  // The queue whose first unit came first of those that can be performed now; null: there is none.
  std::shared_ptr<Queue> next_runnable();
  [[nodiscard]] WantedPoints wanted(const Queue& queue) const;
  // Trains a first unit without the lock. False when it is not done: examples are missing, or it is
  // stopped.
  bool train(Queue& queue, std::vector<SparseUpdate>& update);

  Result<Replies> perform(Queue& queue, Lock& lock);
  Result<Replies> perform_training(Queue& queue, Lock& lock);
  Result<Replies> perform_evaluation(Queue& queue, Lock& lock);
  // Hands the shard over if that is asked for and nothing is in its way.
  Result<void> release(Queue& queue, Replies& replies);
  // Asks for what the queues need next, then ahead through their rounds.
  void ask(Replies& replies);
  void ask_for(const WantedPoints& wanted, Replies& replies);
  void ask_ahead(BatchIndex next, Replies& replies);

  const ModelConfig model_;
  const RunPlan plan_;
  PauseGate& gate_;
  ExampleStore& points_;
  const unsigned lanes_;
  WideTrainer trainer_;
  WideBatches batches_;
  std::map<ShardId, std::shared_ptr<Queue>> queues_;
  std::uint64_t units_ = 0;                 // that have come
  std::map<RoundIndex, BatchIndex> asked_;  // up to which batch all of a round has been asked for
  unsigned busy_ = 0;
  std::condition_variable idle_;
};

}  // namespace gleaner::volunteer
