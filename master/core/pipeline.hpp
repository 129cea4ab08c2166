// Batches in flight: forward pass, gradients from every output shard, update of the input layer,
// and the log from which a shard is replayed. Pure state; used from the core only.
//
// The worker's tasks come out in the order of the Schedule. Results decide *when* the next task
// comes out, never which.
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

// An answer for a batch whose gradient a relay holds, and will send in a sum.
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
  double code_length = 0;  // mean length of its quantized activations
  // 1 for each output shard whose gradient is added or promised.
  std::vector<std::uint8_t> covered;
  // Digests of gradients by output shard. Only volunteers that are not audited set them.
  std::vector<std::optional<std::uint64_t>> digests;
  std::uint32_t covered_count = 0;  // shards whose gradients are added
  std::vector<PromisedGradient> promised;
  std::vector<std::uint32_t> units_on;  // by example
  // Running sum until the batch is applied. Only the worker reads or changes it.
  std::shared_ptr<std::vector<std::int32_t>> gradient;
  std::int64_t loss = 0;  // 2^-20 nats, of covered shards
  std::uint64_t active = 0;
};

// The sum of two losses that are not negative. Saturates.
constexpr std::int64_t add_losses(std::int64_t one, std::int64_t other) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return one > kMost - other ? kMost : one + other;
}

// Nats.
constexpr double to_nats(std::int64_t loss) {
  return static_cast<double>(loss) / 1048576.0;
}

// Sums over the batches and shards of a round.
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

  // Tasks that may run now. Batches of rounds from `rounds_open` on do not start.
  std::vector<WorkerTask> advance(RoundIndex rounds_open);

  void forward_done(const ForwardDone& done);
  void backward_done(BatchIndex batch);

  // Batches below this have quantized activations: units may carry them.
  [[nodiscard]] BatchIndex frontier() const { return frontier_; }

  // Batches below this are applied to the input layer.
  [[nodiscard]] BatchIndex applied() const { return applied_; }

  // Rounds below this have begun their forward passes.
  [[nodiscard]] RoundIndex rounds_started() const {
    const BatchIndex next = schedule_.next_forward();
    return next == 0 ? 0 : plan_.round_of(next - 1) + 1;
  }

  // Requires a batch in the log: below the frontier and not forgotten.
  [[nodiscard]] const BatchRecord& at(BatchIndex batch) const;
  [[nodiscard]] bool is_covered(BatchIndex batch, ShardId shard) const;

  // Takes the results of a unit's batches. With `has_gradient`, each result's gradient is the sum
  // over the unit's shards, none of which may be covered yet. Returns the parts that the worker is
  // to add before any later task of advance(). kFault when digests differ from those of an earlier
  // volunteer, unless this volunteer is audited. kProtocol when a gradient has an impossible size.
  // An error changes nothing.
  Result<std::vector<AddGradientsTask::Part>> add_results(std::vector<BatchResult> results,
                                                          bool has_gradient,
                                                          bool is_audited = false);

  // Takes the result of a unit whose gradients `relay` will send in sums. Its shards are covered
  // from now on, and count once the sums are here. Errors as for add_results(). Requires a check
  // for each batch.
  Result<void> promise(UnitResult result, RelayId relay, SessionId session, Instant now);

  // Takes the sum of these units' gradients, and returns the part that the worker is to add.
  // kStaleLease if not all of them are promised by this relay; kProtocol for a gradient that cannot
  // be one. Nothing changes on an error.
  Result<AddGradientsTask::Part> keep_promise(
      RelayId relay, BatchIndex batch, const std::vector<std::pair<SessionId, UnitId>>& units,
      Bytes gradient);

  // The relay is gone. Returns its promised gradients, which must be computed again.
  std::vector<std::pair<BatchIndex, ShardId>> break_promises(RelayId relay);

  // The relay that has held a gradient of the next batch since before `when`, if any.
  [[nodiscard]] std::optional<RelayId> overdue_relay(Instant when) const;

  // Requires a round whose batches are all in the log.
  [[nodiscard]] RoundSums sums(RoundIndex round) const;

  // Forgets batches before `batch`.
  void forget_before(BatchIndex batch);

  [[nodiscard]] std::size_t log_size() const { return log_.size(); }

  // The batch's positives in `shards` (ascending).
  [[nodiscard]] Positives positives_in(BatchIndex batch, const std::vector<LeaseRef>& shards) const;

 private:
  static Result<void> check_gradient(const BatchRecord& record, BatchIndex batch,
                                     const Bytes& gradient);
  static void count(BatchRecord& record, const ShardOutcome& outcome);
  Result<void> check_digests(const BatchRecord& record, BatchIndex batch,
                             const std::vector<ShardOutcome>& shards) const;

  const RunPlan& plan_;
  const ShardMap& map_;
  Schedule schedule_;  // tasks issued to the worker
  BatchIndex frontier_;
  BatchIndex applied_;
  std::map<BatchIndex, BatchRecord> log_;
};

}  // namespace gleaner
