// The run as a function of the batch index: the examples of a batch, its round and epoch, the
// updates that its forward pass has seen, and its learning rates. Immutable after construction; any
// thread may use it.
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

// The order in which evaluations go through a test set of `points` examples.
Permutation test_order(std::uint64_t points, std::uint64_t seed);

// Most rounds open at a time with a hidden layer, where shards depend on one another.
inline constexpr RoundIndex kRoundsOpenMax = 2;

// Every epoch visits all examples once, in its own order; its last batch may be smaller. A round is
// a part of an epoch (the last part may be shorter), or several whole epochs: as many as fit
// `round_batches` batches.
class RunPlan {
 public:
  // Requires a valid configuration whose epochs are a multiple of epochs_per_round(). The learning
  // rates are halved from each batch of `rate_cuts` (ascending) on.
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
  // Most rounds open at a time: kRoundsOpenMax with a hidden layer. Without one, a shard may be
  // `staleness` rounds (at least one) ahead of the slowest shard.
  [[nodiscard]] RoundIndex rounds_open() const;
  // Whole epochs in the first `checkpoint` rounds.
  [[nodiscard]] std::uint32_t epochs_done(RoundIndex checkpoint) const;

  // Epochs in the first `batches` batches, with fractions.
  [[nodiscard]] double epochs_in(BatchIndex batches) const {
    return static_cast<double>(batches) / static_cast<double>(batches_per_epoch_);
  }

  // Whether a run that is evaluated every `every_epochs` epochs (0: only at its end) is evaluated
  // at `checkpoint`. If rounds are longer, the first checkpoint after these epochs is evaluated.
  [[nodiscard]] bool evaluates_at(RoundIndex checkpoint, std::uint32_t every_epochs) const;

  // The lag of `batch`: `staleness`, or less while the lag still rises.
  [[nodiscard]] std::uint32_t lag(BatchIndex batch) const;

  // The forward pass of `batch` sees exactly the updates of batches < applied_before(batch): all
  // before batch - lag(batch), and all of earlier rounds. The lag is fixed instead of
  // "whatever has arrived", because timing would otherwise choose the weights, and no two runs
  // would give the same model.
  [[nodiscard]] BatchIndex applied_before(BatchIndex batch) const;

  // Whether touched rows are rehashed after `batch`: on the schedule and at every round's end, so
  // that at a checkpoint every stored hash code is that of its stored row.
  [[nodiscard]] bool rehashes_after(BatchIndex batch) const;

  [[nodiscard]] LearningRates rates(BatchIndex batch) const;

  [[nodiscard]] std::uint32_t examples_in(BatchIndex batch) const;
  // Indices in the training file of the batch's examples, in order.
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
  // After a span (one or several epochs) the division into rounds begins again.
  std::uint32_t epochs_per_span_;
  RoundIndex rounds_per_span_;
};

// The one order in which every trainer trains a run: a function of the plan. With lag s and a round
// [b, e): forward b .. b+s; then for each t in [b, e): backward t, forward t+s+1 (if < e); then the
// round's commit. Waiting (for the gradient of a batch, for a free worker) only delays a step.
// Plain value; the plan outlives it.
class Schedule {
 public:
  enum class Kind : std::uint8_t {
    kForward,   // the hidden layer's activations on a batch, for the output shards
    kBackward,  // the input layer's update by the batch's gradient
    kCommit,    // the input layer's commit of a round
  };

  struct Step {
    Kind kind = Kind::kForward;
    std::uint64_t index = 0;  // a batch, or the committed round
    friend bool operator==(const Step&, const Step&) = default;
  };

  Schedule(const RunPlan& plan, RoundIndex checkpoint)
      : plan_(&plan), forward_(plan.round_begin(checkpoint)), backward_(forward_) {}

  // The next step, if forward passes of batches from `forward_end` on must wait. Nullopt after the
  // last round's commit, or when only such forward passes are left.
  [[nodiscard]] std::optional<Step> next(BatchIndex forward_end = ~BatchIndex{0}) const;
  // Moves on to the step after next().
  void advance(BatchIndex forward_end = ~BatchIndex{0});

  // The batches of the next forward step and of the next backward step.
  [[nodiscard]] BatchIndex next_forward() const { return forward_; }

  [[nodiscard]] BatchIndex next_backward() const { return backward_; }

 private:
  const RunPlan* plan_;
  BatchIndex forward_;
  BatchIndex backward_;
  bool owes_commit_ = false;  // of the round that ends at backward_
};

}  // namespace gleaner
