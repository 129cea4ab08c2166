// The smallest run that the protocol allows, and messages that fit it: for tests of the cores, in
// which sizes must agree and arithmetic does not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/work/quantized_activations.hpp"
#include "master/core/core_config.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// 4 output shards of 3 labels, 1 input shard; 2 epochs of 5 batches of 2 examples, in rounds of
// 3 and 2; lag 1.
ModelConfig tiny_model();

// Long deadlines, no evaluation.
CoreConfig tiny_core_config(const ModelConfig& model = tiny_model());

// All units are above 0, so that a gradient has an entry for each.
QuantizedActivations tiny_codes(const RunPlan& plan, BatchIndex batch, std::uint32_t hidden);

// A shard's answer for a batch: every entry of its gradient. Values repeat after 1,024 batches, so
// that a sum over many shards fits a gradient.
constexpr std::int32_t tiny_gradient(BatchIndex batch, ShardId shard) {
  return static_cast<std::int32_t>(100 * (batch % 1024 + 1) + raw(shard));
}

// A shard's answer for a batch, or for test examples from `index` on: every activation's value.
constexpr float tiny_activation(std::uint64_t index, ShardId shard) {
  return static_cast<float>(100 * (index + 1) + raw(shard));
}

// One row of the shard.
ShardRows tiny_rows(const ShardMap& map, ShardId shard, std::uint32_t row = 0);
SparseUpdate tiny_update(const ShardMap& map, ShardId shard, std::uint32_t row = 0);

// A volunteer that follows the protocol and computes nothing: the replies to a message, in an
// honest volunteer's order. Throws when the steps of an input shard are out of order, or a unit
// names an older lease of its shard. It requests the examples of those steps, and does not need
// them.
class HonestVolunteer {
 public:
  explicit HonestVolunteer(const ModelConfig& model);

  std::vector<Message> replies_to(const Message& message);

  // Whether a volunteer acts on the message.
  static bool is_task(const Message& message);

  // Sets the number of parts of commits and hand-overs.
  void set_parts(std::uint32_t parts) { parts_ = parts; }

  // Sets the claimed time of each unit.
  void set_compute_us(std::uint64_t us) { compute_us_ = us; }

  // Sets the reported loss of a batch on a shard, in 2^-20 nats.
  void set_loss(std::function<std::int64_t(BatchIndex)> loss) { loss_ = std::move(loss); }

  // The learning rate of a received batch.
  [[nodiscard]] float rate_of(BatchIndex batch) const { return rates_.at(batch); }

  // The gradients of its updates of input shards.
  [[nodiscard]] const std::map<std::pair<BatchIndex, ShardId>, Bytes>& input_gradients() const {
    return input_gradients_;
  }

  // Adds an offset to the reported digests, as a machine that computes wrongly.
  void set_digest_offset(std::uint64_t offset) { digest_offset_ = offset; }

 private:
  struct Held {
    LeaseRef lease;
    std::uint32_t chunks_missing = 0;
    RoundIndex next_commit = 0;
    BatchIndex next_batch = 0;
  };

  std::vector<Message> reply(const LeaseGrant& grant);
  std::vector<Message> reply(const ShardChunk& chunk);
  std::vector<Message> reply(const TrainUnit& unit);
  // A shard-round, without a hidden layer.
  std::vector<Message> train_round(const TrainUnit& unit);
  std::vector<Message> reply(const InputUnit& unit);
  std::vector<Message> reply(const EvalUnit& unit);
  std::vector<Message> reply(const ReleaseRequest& release);
  std::vector<Message> reply(const Revoke& revoke);
  void commit(Held& held, std::vector<Message>& commits);

  RunPlan plan_;
  ShardMap map_;
  std::uint32_t hidden_;
  std::uint32_t parts_ = 1;
  std::uint64_t digest_offset_ = 0;
  std::function<std::int64_t(BatchIndex)> loss_ = [](BatchIndex) { return 1 << 20; };
  std::map<BatchIndex, float> rates_;
  std::map<std::pair<BatchIndex, ShardId>, Bytes> input_gradients_;
  std::uint64_t compute_us_ = 1000;
  std::map<ShardId, Held> held_;
};

}  // namespace gleaner
