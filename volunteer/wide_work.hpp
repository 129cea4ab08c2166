// Work of a run without a hidden layer: leased shards and their units. A lane is a thread that
// takes a unit and performs it, beside other lanes with units of other shards. Units of one shard
// are performed one at a time, in order. A unit that lacks examples gives its lane back, and goes
// on where it was when they have come.
//
// All functions require the owner's mutex. A passed lock is of that mutex, and is released while a
// lane computes or a thread waits for lanes.
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

  // Work for a run of this model. `mutex` is the owner's; `gate` and `points` outlive this. At most
  // `lanes` units are under way. Prepared batches take at most `batch_bytes`.
  WideWork(const ModelConfig& model, std::mutex& mutex, PauseGate& gate, ExampleStore& points,
           unsigned lanes, std::uint64_t batch_bytes);
  // Requires that no lane has a unit.
  ~WideWork() = default;
  WideWork(const WideWork&) = delete;
  WideWork& operator=(const WideWork&) = delete;

  [[nodiscard]] WideTrainer& trainer() { return trainer_; }

  // Return replies in the order in which they must leave.
  Result<Replies> run(const TrainUnit& unit);
  Result<Replies> run(const EvalUnit& unit);
  Result<Replies> run(const Points& points);
  // Finishes a unit that has begun, and drops the others.
  Result<Replies> run(const ReleaseRequest& release);
  // Stops a unit that has begun, without a reply.
  void run(const Revoke& revoke);

  // The shard is leased: stops units of an earlier lease.
  void begin_lease(const LeaseRef& lease) { drop_units(lease); }

  // Stops all units and drops waiting ones. Lanes with a unit give it back soon.
  void stop();
  // Waits until all lanes have given their units back. Only one thread may wait; it may destroy
  // this object afterwards.
  void wait_for_lanes(Lock& lock);
  // Stops all units and drops all shards.
  void forget();

  // Performs a unit as far as possible and returns its replies. Nullopt when no unit can be
  // performed. Called by lanes.
  std::optional<Result<Replies>> run_next(Lock& lock);

  // Lanes that have a unit.
  [[nodiscard]] unsigned busy() const { return busy_; }

  // Bytes of shards, and of lanes while they train.
  [[nodiscard]] std::uint64_t shard_bytes() const;

  [[nodiscard]] std::uint64_t batch_bytes() const { return batches_.memory_bytes(); }

 private:
  using Unit = std::variant<TrainUnit, EvalUnit>;

  // The units of a shard; the first may have begun.
  struct Queue {
    LeaseRef lease;
    std::deque<Unit> units;
    std::deque<std::uint64_t> numbers;  // order of arrival of each unit
    bool is_on_lane = false;
    std::unique_ptr<WideRound> round;  // of a first unit that has begun training; its lane's
    float factor = 1;                  // of its rates
    std::uint64_t compute_us = 0;      // of the first unit so far
    bool is_to_be_released = false;    // hand over when the first unit is done
    // Shared with the lane.
    std::atomic<BatchIndex> next{0};
    std::atomic<std::uint64_t> round_bytes{0};
    std::atomic<bool> is_stopped{false};

    [[nodiscard]] bool has_begun() const { return is_on_lane || round != nullptr; }

    // The first unit's next batch, if the unit trains.
    [[nodiscard]] std::optional<BatchIndex> next_batch() const;
    void pop();
  };

  Result<Replies> queue(const LeaseRef& lease, Unit unit);
  // Drops the shard's units, unless they are of a later lease.
  void drop_units(const LeaseRef& lease);
  // The queue whose first unit can be performed and came first; null if there is none.
  std::shared_ptr<Queue> next_runnable();
  [[nodiscard]] WantedPoints wanted(const Queue& queue) const;
  // Trains a first unit without the lock. False when examples are missing or the unit is stopped.
  bool train(Queue& queue, std::vector<SparseUpdate>& update);

  Result<Replies> perform(Queue& queue, Lock& lock);
  Result<Replies> perform_training(Queue& queue, Lock& lock);
  Result<Replies> perform_evaluation(Queue& queue, Lock& lock);
  // Hands the shard over if that is requested and the first unit is done.
  Result<void> release(Queue& queue, Replies& replies);
  // Requests examples that the queues need next, then examples ahead in their rounds.
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
  std::uint64_t units_ = 0;  // that have come
  // by round: examples before this batch are all requested
  std::map<RoundIndex, BatchIndex> asked_;
  unsigned busy_ = 0;
  std::condition_variable idle_;
};

}  // namespace gleaner::volunteer
