// A run as small as the protocol allows, and the messages that fit it: for tests of the cores,
// where the arithmetic does not matter but every size must agree.
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

// Every unit on, so that a gradient has an entry for each.
QuantizedActivations tiny_codes(const RunPlan& plan, BatchIndex batch, std::uint32_t hidden);

// A shard's answer for a batch: every entry of its gradient. It comes again after 1,024 batches,
// so that the sum over many shards stays within what a gradient can hold.
constexpr std::int32_t tiny_gradient(BatchIndex batch, ShardId shard) {
  return static_cast<std::int32_t>(100 * (batch % 1024 + 1) + raw(shard));
}

// A shard's answer for a batch, or for test examples from `index` on: every activation.
constexpr float tiny_activation(std::uint64_t index, ShardId shard) {
  return static_cast<float>(100 * (index + 1) + raw(shard));
}

// One row that fits the shard.
ShardRows tiny_rows(const ShardMap& map, ShardId shard, std::uint32_t row = 0);
SparseUpdate tiny_update(const ShardMap& map, ShardId shard, std::uint32_t row = 0);

// A volunteer that does as it is told and computes nothing. Mirrors the protocol, not the core: the
// replies to a message, in the order in which an honest volunteer sends them. Throws when the steps
// of an input shard are out of order, or a unit is of a shard that it was lent again since. It asks
// for the points of those steps, and does not need them.
class HonestVolunteer {
 public:
  explicit HonestVolunteer(const ModelConfig& model);

  std::vector<Message> replies_to(const Message& message);

  // Whether a volunteer does something about it.
  static bool is_task(const Message& message);

  // Parts of each commit and each hand-over from now on.
  void set_parts(std::uint32_t parts) { parts_ = parts; }

  // Sets the time that it claims each unit took.
  void set_compute_us(std::uint64_t us) { compute_us_ = us; }

  // The loss it reports of a batch on a shard, in 2^-20 nats.
  void set_loss(std::function<std::int64_t(BatchIndex)> loss) { loss_ = std::move(loss); }

  // The learning rate of a batch it was given.
  [[nodiscard]] float rate_of(BatchIndex batch) const { return rates_.at(batch); }

  // The gradients of the updates of input shards that it did.
  [[nodiscard]] const std::map<std::pair<BatchIndex, ShardId>, Bytes>& input_gradients() const {
    return input_gradients_;
  }

  // Adds to the digests it reports: a machine that computes something else.
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
  // A shard-round, where there is no hidden layer.
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
