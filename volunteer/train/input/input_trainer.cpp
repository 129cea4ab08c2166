#include "volunteer/train/input/input_trainer.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "common/limits.hpp"
#include "schema/input_parts.hpp"
#include "volunteer/train/lease_parts.hpp"

namespace gleaner {
namespace {

// A master has two rounds open.
constexpr std::uint32_t kCommitsKept = 2;
// Of a result: with a bit each for being on, and what is around them, they fit a frame.
constexpr std::uint64_t kActivationsMax = kFrameBytesMax / 5;
static_assert(kBatchCellsMax <= kActivationsMax, "a batch of every run fits");

template <typename... Args>
Error refuse(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kProtocol, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace

InputTrainer::InputTrainer(const ModelConfig& config, ThreadPool& pool)
    : config_(config),
      map_(config_),
      plan_(config_),
      layer_(config_, pool, InputLayer::NoShards{kCommitsKept}) {}

const InputTrainer::Holding* InputTrainer::find(const LeaseRef& lease) const {
  const auto held = holdings_.find(lease.shard);
  const bool is_held =
      held != holdings_.end() && held->second.lease == lease && !held->second.is_offered;
  return is_held ? &held->second : nullptr;
}

InputTrainer::Holding* InputTrainer::find(const LeaseRef& lease) {
  return const_cast<Holding*>(std::as_const(*this).find(lease));
}

UnitColumns InputTrainer::columns(ShardId shard) const {
  const NeuronRange units = map_.neurons(shard);
  return {units.begin, units.size()};
}

// ---- Loading -----------------------------------------------------------------------------------

Result<void> InputTrainer::begin_load(const LeaseGrant& grant) {
  const ShardId shard = grant.lease.shard;
  if (map_.is_output(shard)) return refuse("shard {} is no input shard", raw(shard));
  if (auto checked = check_grant(grant, config_, map_, plan_); !checked) return checked;
  const auto held = holdings_.find(shard);
  if (held != holdings_.end() && !held->second.is_offered &&
      raw(held->second.lease.epoch) > raw(grant.lease.epoch)) {
    return stale_lease(grant.lease);
  }
  Holding holding{grant.lease,
                  grant.base_round,
                  grant.next_batch,
                  std::make_unique<ChunkLedger>(grant, config_, map_),
                  {},
                  false};
  layer_.hold(shard);
  holdings_.insert_or_assign(shard, std::move(holding));
  return {};
}

Result<void> InputTrainer::load_chunk(const ShardChunk& chunk) {
  Holding* holding = find(chunk.lease);
  if (holding == nullptr) return stale_lease(chunk.lease);
  const ShardId shard = chunk.lease.shard;
  if (holding->loading == nullptr) {
    return refuse("shard {}: chunk {} came after the shard was loaded", raw(shard), chunk.chunk);
  }
  if (auto accepted = holding->loading->accept(chunk); !accepted) return accepted;
  if (holding->loading->is_base(chunk.chunk)) return layer_.load_rows(shard, chunk.rows);
  holding->overlays.push_back(chunk.rows);
  return {};
}

Result<ShardReady> InputTrainer::finish_load(const LeaseRef& lease) {
  Holding* holding = find(lease);
  if (holding == nullptr) return stale_lease(lease);
  if (holding->loading == nullptr) return ShardReady{lease};
  if (auto complete = holding->loading->check_complete(); !complete) return complete.error();
  for (const ShardRows& rows : holding->overlays) {
    if (auto loaded = layer_.load_touched_rows(lease.shard, rows); !loaded) return loaded.error();
  }
  holding->overlays.clear();
  holding->loading.reset();
  return ShardReady{lease};
}

std::vector<OfferedShard> InputTrainer::step_back(RoundIndex checkpoint) {
  std::vector<OfferedShard> offered;
  for (auto entry = holdings_.begin(); entry != holdings_.end();) {
    auto& [shard, holding] = *entry;
    if (holding.loading != nullptr || holding.base_round < checkpoint ||
        !layer_.step_back(shard, holding.base_round - checkpoint)) {
      layer_.drop(shard);
      entry = holdings_.erase(entry);
      continue;
    }
    holding.is_offered = true;
    holding.base_round = checkpoint;
    holding.next_batch = plan_.round_begin(checkpoint);
    offered.push_back({holding.lease, layer_.digest(shard)});
    ++entry;
  }
  return offered;
}

Result<ShardReady> InputTrainer::adopt(const LeaseGrant& grant) {
  const auto held = holdings_.find(grant.lease.shard);
  if (held == holdings_.end() || !held->second.is_offered) return stale_lease(grant.lease);
  Holding& holding = held->second;
  if (grant.base_round != holding.base_round || grant.next_batch != holding.next_batch) {
    return refuse("shard {} is here as of checkpoint {}, not as it is lent", raw(grant.lease.shard),
                  holding.base_round);
  }
  holding.lease = grant.lease;
  holding.is_offered = false;
  return ShardReady{grant.lease};
}

void InputTrainer::drop(const LeaseRef& lease) {
  const auto held = holdings_.find(lease.shard);
  // A late revocation of an earlier lease must not take the present one.
  if (held == holdings_.end() || raw(held->second.lease.epoch) > raw(lease.epoch)) return;
  holdings_.erase(held);
  layer_.drop(lease.shard);
}

// ---- Units -------------------------------------------------------------------------------------

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
  std::uint64_t examples = 0;  // whose activations the result will hold
  for (const InputStep& step : unit.steps) {
    if (step.kind != InputStep::Kind::kBackward) {
      examples += step.examples;
    } else if (step.gradients.size() != unit.leases.size()) {
      return refuse("batch {} comes with {} gradients for {} shards", step.index,
                    step.gradients.size(), unit.leases.size());
    }
  }
  std::uint64_t width = 0;
  for (const LeaseRef& lease : unit.leases) {
    const Holding* holding = find(lease);
    if (holding == nullptr) return stale_lease(lease);
    if (holding->loading != nullptr) {
      return refuse("shard {} is still being loaded", raw(lease.shard));
    }
    width += columns(lease.shard).width;
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
      for (const ShardId shard : shards) {
        Holding& holding = holdings_.at(shard);
        holding.next_batch = step.index + 1;
        if (!plan_.is_round_end(holding.next_batch)) continue;
        end_round(plan_.round_of(step.index), holding, outcome.commits);
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
  HiddenCodes codes{step.examples, config_.hidden, {}, std::vector<std::uint8_t>(cells)};
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

void InputTrainer::end_round(RoundIndex round, Holding& holding,
                             std::vector<ShardCommit>& commits) {
  append_commit(holding.lease, round, layer_.commit(holding.lease.shard), commits);
  holding.base_round = round + 1;
}

Result<std::vector<HandOver>> InputTrainer::hand_over(const LeaseRef& lease) {
  const Holding* holding = find(lease);
  if (holding == nullptr) return stale_lease(lease);
  if (holding->loading != nullptr) return nothing_to_hand_over(lease);
  std::vector<HandOver> result = hand_over_parts(lease, holding->base_round, holding->next_batch,
                                                 layer_.touched_rows(lease.shard));
  drop(lease);
  return result;
}

std::uint64_t InputTrainer::memory_bytes() const {
  std::uint64_t bytes = layer_.memory_bytes();
  for (const auto& [shard, holding] : holdings_) {
    if (holding.loading != nullptr) bytes += holding.loading->memory_bytes();
    for (const ShardRows& rows : holding.overlays) bytes += rows.values.size() * sizeof(float);
  }
  return bytes;
}

std::uint64_t InputTrainer::shard_bytes(const ModelConfig& config) {
  const std::uint64_t width = config.hidden / config.input_shards;
  // Weights, state and place, and the copies of rows touched within a round and the one before.
  return (std::uint64_t{config.features} + 1) * 3 * (width + 3) * sizeof(float);
}

}  // namespace gleaner
