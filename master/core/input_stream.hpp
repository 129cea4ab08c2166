// The work on input shards that volunteers hold, as one stream of steps in the order of the
// arithmetic: the pipeline's forward passes and updates, and between rounds the held-out points of
// an evaluation. Every holder goes through the stream at its own pace; a new one begins where its
// shard stands and leaves out the activations that are known. Pure state; used from the core only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "master/core/events.hpp"
#include "schema/messages.hpp"

namespace gleaner {

class InputStream {
 public:
  // Begins before `next_batch`.
  InputStream(const RunPlan& plan, const ShardMap& map, BatchIndex next_batch);

  // The next step. That of a BackwardTask is not issued before its gradients are here.
  void push(const ForwardTask& task);
  void push(const BackwardTask& task);
  void push(const EvalForwardTask& task);
  // `packed` holds one an input shard, see input_parts.hpp.
  void gradients_ready(BatchIndex batch, std::vector<SharedBytes> packed);

  // The shard has a new holder and stands before `next_batch`.
  void begin(ShardId shard, BatchIndex next_batch);

  // Steps for some shards of one holder that stand at the same place.
  struct Unit {
    std::vector<ShardId> shards;       // ascending
    std::vector<std::uint64_t> steps;  // by number; empty when there is nothing to do
  };

  // The unit that is next for `ready` (ascending), for those furthest behind: at most `steps_max`
  // steps, and no more examples x hidden than a unit may have.
  [[nodiscard]] Unit next_unit(std::span<const ShardId> ready, std::uint32_t steps_max) const;
  // The unit is out. Returns before which batch its shards stand when it is done.
  BatchIndex issued(const Unit& unit);
  [[nodiscard]] std::vector<InputStep> steps_of(const Unit& unit) const;

  // Takes the activations of a unit's steps, once each. Refuses (kProtocol) what does not fit them,
  // of which nothing counts then.
  Result<void> add(const Unit& unit, const std::vector<Bytes>& activations);

  // The activations that are whole now, in order: once each.
  std::vector<EncodeTask> take_whole();

  // The shards whose activations of the first unfinished step are missing, and that step.
  struct Missing {
    InputStep::Kind kind = InputStep::Kind::kForward;
    std::uint64_t index = 0;
    std::vector<ShardId> shards;
  };

  [[nodiscard]] std::optional<Missing> missing() const;

  // Steps before the updates of `batch` may be forgotten.
  void forget_before(BatchIndex batch);

  // Steps that are not forgotten.
  [[nodiscard]] std::size_t size() const { return steps_.size(); }

 private:
  struct Step {
    InputStep::Kind kind = InputStep::Kind::kForward;
    std::uint64_t index = 0;
    std::uint32_t examples = 0;
    BatchIndex before = 0;  // the updates of the batches before it come before the step
    float rate = 0;
    std::vector<SharedBytes> gradients;  // kBackward: one an input shard, once they are here
    std::vector<std::uint8_t> known;     // else: one an input shard
    std::uint32_t known_count = 0;
    std::vector<float> activations;  // examples x hidden; until they are taken
  };

  Step& push(InputStep::Kind kind, std::uint64_t index, std::uint32_t examples);

  [[nodiscard]] std::uint32_t place(ShardId shard) const {
    return raw(shard) - map_.output_shards();
  }

  [[nodiscard]] const Step& at(std::uint64_t step) const { return steps_[step - first_]; }

  [[nodiscard]] std::uint64_t end() const { return first_ + steps_.size(); }

  // Whether the shard at `place` is to do the step.
  [[nodiscard]] static bool needs(std::uint32_t place, const Step& step);
  // The first from `step` on that asks for activations.
  [[nodiscard]] std::uint64_t next_asked(std::uint64_t step) const;
  // The first step from `cursor` on that the shard is to do.
  [[nodiscard]] std::uint64_t next_step(std::uint32_t place, std::uint64_t cursor) const;

  const RunPlan& plan_;
  const ShardMap& map_;
  std::deque<Step> steps_;
  std::uint64_t first_ = 0;  // number of steps_.front()
  std::uint64_t taken_ = 0;  // steps before it have had their activations taken, or have none
  BatchIndex before_ = 0;    // updates pushed
  std::vector<std::uint64_t>
      cursors_;  // one an input shard: the first step not issued to its holder
};

}  // namespace gleaner
