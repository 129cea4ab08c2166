// Batches on their way: forward pass, gradients from every output shard, update of the input layer,
// and the log that lets a shard be replayed. Pure state; used from the core only.
//
// The worker's tasks come out in the one order of the Schedule. Results only decide *when* the next
// task comes out, never which.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "master/core/events.hpp"

namespace gleaner {

// A unit's answer for a batch whose gradient a relay has, and is yet to send in a sum.
struct PromisedGradient {
  RelayId relay{};
  SessionId session{};
  UnitId unit{};
  std::vector<ShardOutcome> shards;
  std::uint64_t check = 0;  // the gradient's
  Instant since{};
};

// A batch from its forward pass until its round is folded.
struct BatchRecord {
  SharedBytes packed;
  std::shared_ptr<const QuantizedActivations> codes;  // until the batch is applied
  Positives positives;
  std::uint32_t examples = 0;
  double code_length = 0;  // mean_length of its codes
  // One an output shard: its gradient has been added, or is promised.
  std::vector<std::uint8_t> covered;
  // Digests of the gradients, by output shard; only those that a volunteer sent who is not audited.
  std::vector<std::optional<std::uint64_t>> digests;
  std::uint32_t covered_count = 0;  // without what is promised
  std::vector<PromisedGradient> promised;
  std::vector<std::uint32_t> units_on;  // by example
  // Running sum, until the batch is applied; the worker's alone to read and to change.
  std::shared_ptr<std::vector<std::int32_t>> gradient;
  std::int64_t loss = 0;  // 2^-20 nats, of covered shards
  std::uint64_t active = 0;
};

// The sum of two losses, neither of which is negative; what it cannot hold it holds at its most.
constexpr std::int64_t add_losses(std::int64_t one, std::int64_t other) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return one > kMost - other ? kMost : one + other;
}

// Nats.
constexpr double to_nats(std::int64_t loss) {
  return static_cast<double>(loss) / 1048576.0;
}

// A round's figures, added up over its batches and shards.
struct RoundSums {
  std::uint64_t examples = 0;
  std::int64_t loss = 0;        // 2^-20 nats
  std::uint64_t active = 0;     // pairs of an example and an active neuron
  double code_lengths = 0;      // mean length of a batch's quantized activations, times examples
  double first_batch_loss = 0;  // nats per example
};

class Pipeline {
 public:
  Pipeline(const RunPlan& plan, const ShardMap& map, RoundIndex checkpoint);

  // Tasks that may run now. Batches of rounds >= `rounds_open` are not started.
  std::vector<WorkerTask> advance(RoundIndex rounds_open);

  void forward_done(const ForwardDone& done);
  void backward_done(BatchIndex batch);

  // Batches below this have quantized activations, so units may carry them.
  [[nodiscard]] BatchIndex frontier() const { return frontier_; }

  // Batches below this are part of the input layer.
  [[nodiscard]] BatchIndex applied() const { return applied_; }

  // Rounds below this have had a batch's forward pass issued.
  [[nodiscard]] RoundIndex rounds_started() const {
    const BatchIndex next = schedule_.next_forward();
    return next == 0 ? 0 : plan_.round_of(next - 1) + 1;
  }

  // Requires a batch in the log: not yet forgotten and below the frontier.
  [[nodiscard]] const BatchRecord& at(BatchIndex batch) const;
  [[nodiscard]] bool is_covered(BatchIndex batch, ShardId shard) const;

  // Takes a unit's results, of different batches; each gradient must be the sum of the shards that
  // are covered now when `has_gradient`. Returns what the worker is to add, before it gets any
  // other task that advance() gives. A volunteer that is not audited must bring the digests that
  // others like it have brought (kFault). kProtocol for a gradient that cannot be one by its size.
  // Nothing changes on an error, in any of the batches.
  Result<std::vector<AddGradientsTask::Part>> add_results(std::vector<BatchResult> results,
                                                          bool has_gradient,
                                                          bool is_audited = false);

  // Takes a unit's result, whose gradients `relay` is to send in sums: the shards are covered from
  // now on, and count once it has done so. Fails as add_results() does. Requires a check a batch.
  Result<void> promise(UnitResult result, RelayId relay, SessionId session, Instant now);

  // The sum of the gradients of these units, for the worker to add, as above. kStaleLease if not
  // all of them are promised by this relay; kProtocol for a gradient that cannot be one. Nothing
  // changes on an error.
  Result<AddGradientsTask::Part> keep_promise(
      RelayId relay, BatchIndex batch, const std::vector<std::pair<SessionId, UnitId>>& units,
      Bytes gradient);

  // The relay is gone: what it has promised is to be asked for again.
  std::vector<std::pair<BatchIndex, ShardId>> break_promises(RelayId relay);

  // Who has promised something before `when` for the next batch that is to be applied.
  [[nodiscard]] std::optional<RelayId> overdue_relay(Instant when) const;

  // Requires a round whose batches are all in the log.
  [[nodiscard]] RoundSums sums(RoundIndex round) const;

  // The log may forget batches below `batch`.
  void forget_before(BatchIndex batch);

  [[nodiscard]] std::size_t log_size() const { return log_.size(); }

  // The batch's positives that fall into `shards` (ascending).
  [[nodiscard]] Positives positives_in(BatchIndex batch, const std::vector<LeaseRef>& shards) const;

 private:
  static Result<void> check_gradient(const BatchRecord& record, BatchIndex batch,
                                     const Bytes& gradient);
  static void count(BatchRecord& record, const ShardOutcome& outcome);
  Result<void> check_digests(const BatchRecord& record, BatchIndex batch,
                             const std::vector<ShardOutcome>& shards) const;

  const RunPlan& plan_;
  const ShardMap& map_;
  Schedule schedule_;  // of what has been issued to the worker
  BatchIndex frontier_;
  BatchIndex applied_;
  std::map<BatchIndex, BatchRecord> log_;
};

}  // namespace gleaner
