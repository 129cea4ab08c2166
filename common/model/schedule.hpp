// The one order in which a run is trained, whoever trains it: a function of the plan alone. With
// lag s and a round [b, e): forward b .. b+s; then for each t in [b, e): backward t, forward t+s+1
// (if < e); then the round's commit. What a step waits for (the output shards' gradient of a batch,
// a free worker) only decides when it is done. Plain value; the plan outlives it.
#pragma once

#include <cstdint>
#include <optional>

#include "common/ids.hpp"
#include "common/model/run_plan.hpp"

namespace gleaner {

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
