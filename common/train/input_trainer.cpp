#include "common/train/input_trainer.hpp"

#include <limits>

#include "common/limits.hpp"

namespace gleaner {
namespace {

// A master has at most two rounds open.
constexpr std::uint32_t kCommitsKept = 2;
// Bound of a result's activations. Together with one bit per activation and the envelope, they fit
// a frame.
constexpr std::uint64_t kActivationsMax = kFrameBytesMax / 5;
static_assert(kBatchCellsMax <= kActivationsMax, "a batch of every run fits");

// Keeps a shard in the layer as long as this object exists.
class HeldInputShard final : public LeasedShard {
 public:
  // The layer, which must not hold the shard yet, outlives this object.
  HeldInputShard(InputLayer& layer, ShardId shard) : layer_(layer), shard_(shard) {
    layer_.hold(shard_);
  }

  ~HeldInputShard() override { layer_.drop(shard_); }

  Result<void> load(const ShardRows& rows) override { return layer_.load_rows(shard_, rows); }

  Result<void> load_touched(const ShardRows& rows) override {
    return layer_.load_touched_rows(shard_, rows);
  }

  // The layer makes every row in its initial state.
  void load_initial(const ChunkLedger& /*ledger*/) override {}

  void finish_loading() override {}

  bool step_back(std::uint32_t commits) override { return layer_.step_back(shard_, commits); }

  [[nodiscard]] std::vector<ShardRows> touched_rows() const override {
    return layer_.touched_rows(shard_);
  }

  [[nodiscard]] ShardDigest digest() const override { return layer_.digest(shard_); }

  // The layer counts it.
  [[nodiscard]] std::uint64_t memory_bytes() const override { return 0; }

 private:
  InputLayer& layer_;
  ShardId shard_;
};

}  // namespace

InputTrainer::InputTrainer(const ModelConfig& config, ThreadPool& pool)
    : LeasedShards(config, /*are_output=*/false),
      layer_(config_, pool, InputLayer::NoShards{kCommitsKept}) {}

UnitColumns InputTrainer::columns(ShardId shard) const {
  const NeuronRange units = map_.neurons(shard);
  return {units.begin, units.size()};
}

std::unique_ptr<LeasedShard> InputTrainer::make_shard(const LeaseGrant& grant) {
  return std::make_unique<HeldInputShard>(layer_, grant.lease.shard);
}

Result<void> InputTrainer::check_steps(const InputUnit& unit) const {
  for (const InputStep& step : unit.steps) {
    const bool is_known =
        step.kind == InputStep::Kind::kScore
            ? step.index <= std::numeric_limits<std::uint64_t>::max() - step.examples
            : step.index < plan_.batch_count() && step.examples == plan_.examples_in(step.index);
    if (is_known) continue;
    return refuse("step {} with {} examples is none of the run's", step.index, step.examples);
  }
  return {};
}

Result<void> InputTrainer::check_order(const InputStep& step, BatchIndex& next_batch) const {
  if (step.kind == InputStep::Kind::kScore) return {};
  if (step.kind == InputStep::Kind::kForward) {
    if (plan_.applied_before(step.index) == next_batch) return {};
    return refuse("the forward pass of batch {} sees the updates before batch {}, not before {}",
                  step.index, plan_.applied_before(step.index), next_batch);
  }
  if (step.index != next_batch) {
    return refuse("the update of batch {}, but the shard stands before batch {}", step.index,
                  next_batch);
  }
  ++next_batch;
  return {};
}

Result<void> InputTrainer::check(const InputUnit& unit) const {
  std::uint64_t examples = 0;  // examples whose activations the result will hold
  for (const InputStep& step : unit.steps) {
    if (step.kind != InputStep::Kind::kBackward) {
      examples += step.examples;
    } else if (step.gradients.size() != unit.leases.size()) {
      return refuse("batch {} comes with {} gradients for {} shards", step.index,
                    step.gradients.size(), unit.leases.size());
    }
  }
  const auto held = find_loaded(unit.leases);
  if (!held) return held.error();
  std::uint64_t width = 0;
  for (const auto* holding : *held) {
    width += columns(holding->lease.shard).width;
    BatchIndex next_batch = holding->next_batch;
    for (const InputStep& step : unit.steps) {
      if (auto checked = check_order(step, next_batch); !checked) return checked;
    }
  }
  if (examples * width > kActivationsMax) {
    return refuse("activations of {} examples and {} units do not fit a frame", examples, width);
  }
  return {};
}

Result<InputTrainer::UnitOutcome> InputTrainer::run(
    const InputUnit& unit, std::span<const std::span<const ExampleView>> examples) {
  const auto held = find_loaded(unit.leases);
  if (!held) return held.error();
  std::vector<ShardId> shards;
  for (const LeaseRef& lease : unit.leases) shards.push_back(lease.shard);
  UnitOutcome outcome;
  outcome.result.unit = unit.unit;
  for (std::size_t s = 0; s < unit.steps.size(); ++s) {
    const InputStep& step = unit.steps[s];
    const std::span<const ExampleView> points = examples[s];
    if (step.kind == InputStep::Kind::kBackward) {
      if (auto updated = update(step, unit.leases, shards, points); !updated) {
        return updated.error();
      }
      for (auto* holding : *held) {
        holding->next_batch = step.index + 1;
        if (!plan_.is_round_end(holding->next_batch)) continue;
        end_round(*holding, plan_.round_of(step.index), layer_.commit(holding->lease.shard),
                  outcome.commits);
      }
      continue;
    }
    const bool is_training = step.kind == InputStep::Kind::kForward;
    const std::vector<float> activations = layer_.activations(
        points, is_training ? std::optional<BatchIndex>(step.index) : std::nullopt, shards);
    for (const ShardId shard : shards) {
      outcome.result.activations.push_back(
          pack_activations(step.examples, config_.hidden, columns(shard), activations));
    }
  }
  return outcome;
}

Result<void> InputTrainer::update(const InputStep& step, const std::vector<LeaseRef>& leases,
                                  std::span<const ShardId> shards,
                                  std::span<const ExampleView> examples) {
  const std::size_t cells = std::size_t{step.examples} * config_.hidden;
  QuantizedActivations codes{step.examples, config_.hidden, {}, std::vector<std::uint8_t>(cells)};
  std::vector<std::int32_t> gradient(cells);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    auto unpacked =
        unpack_unit_gradient(*step.gradients[i], columns(leases[i].shard), codes, gradient);
    if (!unpacked) {
      return refuse("batch {}, shard {}: {}", step.index, raw(leases[i].shard),
                    unpacked.error().message);
    }
  }
  layer_.backward(step.index, step.rate, examples, codes, gradient, shards);
  return {};
}

std::uint64_t InputTrainer::shard_bytes(const ModelConfig& config) {
  const std::uint64_t width = config.hidden / config.input_shards;
  // Weights, state and slot, three times: the row, and its copies of this round and the round
  // before.
  return (std::uint64_t{config.features} + 1) * 3 * (width + 3) * sizeof(float);
}

}  // namespace gleaner
