// The run as a function of the batch index: which examples a batch holds, which round and epoch it
// belongs to, which updates its forward pass has seen, and at which rates it trains.
// Immutable after construction; any thread may use it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/counter_random.hpp"
#include "common/ids.hpp"
#include "common/model/model_config.hpp"

namespace gleaner {

struct LearningRates {
  float input = 0;
  float output = 0;
};

// The order in which evaluations go through a test set of `points` points.
Permutation test_order(std::uint64_t points, std::uint64_t seed);

// Rounds that may be open at a time with a hidden layer, where shards depend on one another.
inline constexpr RoundIndex kRoundsOpenMax = 2;

// Every epoch visits all points once in an order of its own; its last batch may be shorter than the
// others. A round is a part of an epoch, of which the last may be shorter, or several whole epochs:
// as many as have `round_batches` batches.
class RunPlan {
 public:
  // Requires a valid configuration, with as many epochs as whole rounds have. From each batch of
  // `rate_cuts` (ascending) on the rates are half of what they were to be.
  explicit RunPlan(const ModelConfig& config, std::vector<BatchIndex> rate_cuts = {});

  [[nodiscard]] BatchIndex batch_count() const { return batches_per_epoch_ * epochs_; }

  [[nodiscard]] RoundIndex round_count() const {
    return epochs_ / epochs_per_span_ * rounds_per_span_;
  }

  [[nodiscard]] std::uint64_t batches_per_epoch() const { return batches_per_epoch_; }

  [[nodiscard]] std::uint32_t epoch_of(BatchIndex batch) const;
  [[nodiscard]] RoundIndex round_of(BatchIndex batch) const;
  // First batch of `round`; round_begin(round_count()) is batch_count().
  [[nodiscard]] BatchIndex round_begin(RoundIndex round) const;

  [[nodiscard]] BatchIndex round_end(RoundIndex round) const { return round_begin(round + 1); }

  [[nodiscard]] bool is_round_end(BatchIndex next_batch) const;  // next_batch begins a round
  [[nodiscard]] bool ends_epoch(RoundIndex round) const;
  // Rounds that may be open at a time: with a hidden layer kRoundsOpenMax. Without one a shard may
  // be `staleness` rounds, one at least, ahead of the slowest.
  [[nodiscard]] RoundIndex rounds_open() const;
  // Whole epochs that the first `checkpoint` rounds have.
  [[nodiscard]] std::uint32_t epochs_done(RoundIndex checkpoint) const;

  // Epochs that the first `batches` batches make, with fractions.
  [[nodiscard]] double epochs_in(BatchIndex batches) const {
    return static_cast<double>(batches) / static_cast<double>(batches_per_epoch_);
  }

  // Whether a run that is evaluated every `every_epochs` epochs, or only at its end where that is
  // 0, is evaluated at `checkpoint`: where rounds are longer, at the first one after those epochs.
  [[nodiscard]] bool evaluates_at(RoundIndex checkpoint, std::uint32_t every_epochs) const;

  // The lag that `batch` is trained with: `staleness`, or less while it rises to that.
  [[nodiscard]] std::uint32_t lag(BatchIndex batch) const;
  // The first batch after it that is trained with another lag; batch_count() when there is none.
  [[nodiscard]] BatchIndex lag_end(BatchIndex batch) const;

  // The forward pass of `batch` sees exactly the updates of batches < applied_before(batch), which
  // are those before batch - lag(batch), and all of the rounds before.
  // A fixed lag rather than "whatever has arrived": with the latter, timing would choose the
  // weights, and no two runs would give the same model.
  [[nodiscard]] BatchIndex applied_before(BatchIndex batch) const;

  // True when touched rows are hashed again after `batch`: on the schedule, and at every round's
  // end, so that at a checkpoint every table entry is the code of its stored row.
  [[nodiscard]] bool rehashes_after(BatchIndex batch) const;

  [[nodiscard]] LearningRates rates(BatchIndex batch) const;

  [[nodiscard]] std::uint32_t examples_in(BatchIndex batch) const;
  // Indices into the training file of the batch's examples, in the batch's order.
  [[nodiscard]] std::vector<std::uint64_t> points_of(BatchIndex batch) const;

 private:
  [[nodiscard]] std::uint64_t span_batches() const { return batches_per_epoch_ * epochs_per_span_; }

  std::uint64_t seed_;
  std::uint64_t points_;
  std::uint32_t batch_examples_;
  std::uint32_t round_batches_;
  std::uint32_t staleness_;
  std::uint32_t staleness_rise_;
  bool is_wide_;
  std::uint32_t epochs_;
  std::uint32_t rehash_batches_;
  std::uint32_t warmup_batches_;
  LearningRates initial_rates_;
  float rate_decay_;
  std::vector<BatchIndex> rate_cuts_;
  std::uint64_t batches_per_epoch_;
  // After a span, an epoch or several, rounds begin again.
  std::uint32_t epochs_per_span_;
  RoundIndex rounds_per_span_;
};

// The one order in which a run is trained, whoever trains it: a function of the plan alone. With
// lag s and a round [b, e): forward b .. b+s; then for each t in [b, e): backward t, forward t+s+1
// (if < e); then the round's commit. What a step waits for (the output shards' gradient of a batch,
// a free worker) only decides when it is done. Plain value; the plan outlives it.
class Schedule {
 public:
  enum class Kind : std::uint8_t {
    kForward,   // the hidden layer's activations on a batch, which the output shards train on then
    kBackward,  // the input layer's update by the batch's whole gradient
    kCommit,    // the input layer's commit of a round
  };

  struct Step {
    Kind kind = Kind::kForward;
    std::uint64_t index = 0;  // a batch, or the round that is committed
    friend bool operator==(const Step&, const Step&) = default;
  };

  Schedule(const RunPlan& plan, RoundIndex checkpoint)
      : plan_(&plan), forward_(plan.round_begin(checkpoint)), backward_(forward_) {}

  // The step to be done, where forward passes of batches from `forward_end` on have to wait;
  // nullopt after the last round's commit, or when nothing but those is left.
  [[nodiscard]] std::optional<Step> next(BatchIndex forward_end = ~BatchIndex{0}) const;
  // Goes on to the step after it.
  void advance(BatchIndex forward_end = ~BatchIndex{0});

  // The batches whose forward and whose backward steps come next.
  [[nodiscard]] BatchIndex next_forward() const { return forward_; }

  [[nodiscard]] BatchIndex next_backward() const { return backward_; }

 private:
  const RunPlan* plan_;
  BatchIndex forward_;
  BatchIndex backward_;
  bool owes_commit_ = false;  // of the round that ends at backward_
};

}  // namespace gleaner
