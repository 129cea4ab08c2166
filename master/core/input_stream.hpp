// Work on input shards that volunteers hold: one stream of steps in the order of the arithmetic.
// The steps are the pipeline's forward passes and updates, and between rounds the test examples of
// an evaluation. Every holder goes through the stream at its own pace. A new holder begins where
// its shard stands, and skips activations that are known. Pure state; used from the core only.
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
  // The stream begins before `next_batch`.
  InputStream(const RunPlan& plan, const ShardMap& map, BatchIndex next_batch);

  // Appends a step. A BackwardTask's step is issued only once its gradients are here.
  void push(const ForwardTask& task);
  void push(const BackwardTask& task);
  void push(const EvalForwardTask& task);
  // `packed` has one entry per input shard: see input_parts.hpp.
  void gradients_ready(BatchIndex batch, std::vector<SharedBytes> packed);

  // The shard has a new holder and stands before `next_batch`.
  void begin(ShardId shard, BatchIndex next_batch);

  // Steps for shards of one holder that stand at the same step.
  struct Unit {
    std::vector<ShardId> shards;       // ascending
    std::vector<std::uint64_t> steps;  // by number; empty when there is nothing to do
  };

  // The next unit for the shards of `ready` (ascending) that are furthest behind: at most
  // `steps_max` steps, and at most kUnitCellsMax examples x hidden.
  [[nodiscard]] Unit next_unit(std::span<const ShardId> ready, std::uint32_t steps_max) const;
  // The unit is sent. Returns the batch before which its shards stand when it is done.
  BatchIndex issued(const Unit& unit);
  [[nodiscard]] std::vector<InputStep> steps_of(const Unit& unit) const;

  // Takes the activations of a unit's steps, once each. kProtocol when they do not fit; then none
  // of them counts.
  Result<void> add(const Unit& unit, const std::vector<Bytes>& activations);

  // Takes the steps whose activations have become complete, in order.
  std::vector<EncodeTask> take_whole();

  // The first unfinished step, and the shards whose activations it lacks.
  struct Missing {
    InputStep::Kind kind = InputStep::Kind::kForward;
    std::uint64_t index = 0;
    std::vector<ShardId> shards;
  };

  [[nodiscard]] std::optional<Missing> missing() const;

  // Forgets steps before the updates of `batch`.
  void forget_before(BatchIndex batch);

  [[nodiscard]] std::size_t size() const { return steps_.size(); }

 private:
  struct Step {
    InputStep::Kind kind = InputStep::Kind::kForward;
    std::uint64_t index = 0;
    std::uint32_t examples = 0;
    BatchIndex before = 0;  // the updates of earlier batches come before the step
    float rate = 0;
    std::vector<SharedBytes> gradients;  // kBackward: one an input shard, once they are here
    std::vector<std::uint8_t> known;     // other kinds: one an input shard
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
  // The first step from `step` on that asks for activations.
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
