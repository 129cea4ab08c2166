#include "tests/support/tiny_run.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"

namespace gleaner {

ModelConfig tiny_model() {
  ModelConfig model;
  model.points = 10;
  model.features = 8;
  model.labels = 12;
  model.hidden = 16;
  model.output_shards = 4;
  model.input_shards = 1;
  model.epochs = 2;
  model.batch_examples = 2;
  model.round_batches = 3;
  model.staleness = 1;
  model.hash_bits = 2;
  model.tables = 2;
  return model;
}

CoreConfig tiny_core_config(const ModelConfig& model) {
  CoreConfig config;
  config.audit = AuditMode::kOff;
  config.batches_per_unit_max = 2;
  config.rows_per_chunk = 2;
  config.evaluate_chunk = 4;
  config.evaluate_chunks_in_flight = 2;
  config.rejoin_grace = Millis(0);
  config.label_counts.resize(model.labels, 1);
  return config;
}

QuantizedActivations tiny_codes(const RunPlan& plan, BatchIndex batch, std::uint32_t hidden) {
  QuantizedActivations codes;
  codes.examples = plan.examples_in(batch);
  codes.hidden = hidden;
  codes.scales.resize(hidden == 0 ? 0 : codes.examples, 1.0F);
  codes.codes.resize(std::size_t{codes.examples} * hidden, 1);
  return codes;
}

ShardRows tiny_rows(const ShardMap& map, ShardId shard, std::uint32_t row) {
  ShardRows rows;
  rows.rows = {row};
  rows.values.resize(map.row_width(shard));
  rows.states.resize(1);
  rows.codes.resize(map.codes_per_row(shard));
  rows.stale_codes = {0};
  return rows;
}

SparseUpdate tiny_update(const ShardMap& map, ShardId shard, std::uint32_t row) {
  SparseUpdate update;
  update.rows = {row};
  update.scales.resize(1);
  update.levels.resize(map.weights_per_row(shard));
  update.biases.resize(map.is_output(shard) ? 1 : 0);
  update.states.resize(1);
  return update;
}

HonestVolunteer::HonestVolunteer(const ModelConfig& model)
    : plan_(model), map_(model), hidden_(model.hidden) {}

std::vector<Message> HonestVolunteer::replies_to(const Message& message) {
  return std::visit(
      [this](const auto& m) -> std::vector<Message> {
        if constexpr (requires { reply(m); }) return reply(m);
        return {};
      },
      message);
}

bool HonestVolunteer::is_task(const Message& message) {
  return std::visit(
      []<typename T>(const T&) {
        return requires(HonestVolunteer & v, const T& m) {
          v.reply(m);
        };
      },
      message);
}

std::vector<Message> HonestVolunteer::reply(const LeaseGrant& grant) {
  held_[grant.lease.shard] = {grant.lease, grant.chunks, grant.base_round, grant.next_batch};
  if (grant.chunks == 0) return {ShardReady{grant.lease}};
  std::vector<Message> requests;
  for (std::uint32_t chunk = 0; chunk < grant.chunks; ++chunk) {
    requests.emplace_back(ChunkRequest{grant.lease, chunk});
  }
  return requests;
}

std::vector<Message> HonestVolunteer::reply(const ShardChunk& chunk) {
  Held& held = held_.at(chunk.lease.shard);
  if (--held.chunks_missing > 0) return {};
  return {ShardReady{chunk.lease}};
}

void HonestVolunteer::commit(Held& held, std::vector<Message>& commits) {
  if (held.next_batch < plan_.round_end(held.next_commit)) return;
  for (std::uint32_t part = 0; part < parts_; ++part) {
    commits.emplace_back(ShardCommit{held.lease, held.next_commit, part, parts_,
                                     tiny_update(map_, held.lease.shard, part)});
  }
  ++held.next_commit;
}

std::vector<Message> HonestVolunteer::train_round(const TrainUnit& unit) {
  const LeaseRef lease = unit.leases.at(0);
  Held& held = held_.at(lease.shard);
  if (held.lease != lease) throw std::logic_error("a unit of a lease that another has replaced");
  const BatchIndex first = unit.batches.at(0).batch;
  const BatchIndex end = plan_.round_end(plan_.round_of(first));
  if (held.next_batch != first) throw std::logic_error("a shard-round out of order");
  UnitResult result;
  result.unit = unit.unit;
  result.compute_us = compute_us_;
  for (BatchIndex batch = first; batch < end; ++batch) {
    rates_[batch] = unit.batches.at(0).output_rate;
    const auto digest =
        static_cast<std::uint64_t>(tiny_gradient(batch, lease.shard)) + digest_offset_;
    if (batch <= first + 1) {
      result.batches.push_back({batch, {{lease.shard, digest, loss_(batch), 5}}, {}});
      continue;
    }
    ShardOutcome& rest = result.batches.back().shards.front();
    rest.gradient_digest += digest;
    rest.loss += loss_(batch);
    rest.active += 5;
  }
  held.next_batch = end;
  std::vector<Message> replies{std::move(result)};
  commit(held, replies);
  return replies;
}

std::vector<Message> HonestVolunteer::reply(const TrainUnit& unit) {
  if (hidden_ == 0) return train_round(unit);
  UnitResult result;
  result.unit = unit.unit;
  result.compute_us = compute_us_;
  std::vector<Message> commits;
  for (const UnitBatch& batch : unit.batches) {
    const QuantizedActivations codes = tiny_codes(plan_, batch.batch, hidden_);
    BatchResult answer;
    answer.batch = batch.batch;
    rates_[batch.batch] = batch.output_rate;
    std::int32_t sum = 0;
    for (const LeaseRef& lease : unit.leases) {
      const std::int32_t entry = tiny_gradient(batch.batch, lease.shard);
      sum += entry;
      answer.shards.push_back(
          {lease.shard, static_cast<std::uint64_t>(entry) + digest_offset_, loss_(batch.batch), 5});
      Held& held = held_.at(lease.shard);
      if (held.lease != lease)
        throw std::logic_error("a unit of a lease that another has replaced");
      held.next_batch = batch.batch + 1;
      commit(held, commits);
    }
    if (unit.wants_gradient) {
      answer.gradient = pack_gradient(codes, std::vector<std::int32_t>(codes.codes.size(), sum));
    }
    result.batches.push_back(std::move(answer));
  }
  std::vector<Message> replies{std::move(result)};
  std::move(commits.begin(), commits.end(), std::back_inserter(replies));
  return replies;
}

std::vector<Message> HonestVolunteer::reply(const InputUnit& unit) {
  std::vector<Message> replies;
  std::vector<Message> commits;
  InputResult result;
  result.unit = unit.unit;
  for (const InputStep& step : unit.steps) {
    if (step.kind != InputStep::Kind::kBackward) {
      const bool is_training = step.kind == InputStep::Kind::kForward;
      PointsRequest request{is_training ? PointSet::kTraining : PointSet::kTestSet, {}};
      request.points.resize(step.examples);
      std::iota(request.points.begin(), request.points.end(), step.index);
      if (is_training) request.points = plan_.points_of(step.index);
      std::sort(request.points.begin(), request.points.end());
      replies.emplace_back(std::move(request));
    }
    for (std::size_t i = 0; i < unit.leases.size(); ++i) {
      Held& held = held_.at(unit.leases[i].shard);
      if (step.kind == InputStep::Kind::kBackward) {
        if (step.index != held.next_batch) throw std::logic_error("an update out of order");
        input_gradients_[{step.index, held.lease.shard}] = *step.gradients.at(i);
        ++held.next_batch;
        commit(held, commits);
        continue;
      }
      if (step.kind == InputStep::Kind::kForward &&
          plan_.applied_before(step.index) != held.next_batch) {
        throw std::logic_error("a forward pass out of order");
      }
      const NeuronRange units = map_.neurons(held.lease.shard);
      const std::vector<float> activations(std::size_t{step.examples} * hidden_,
                                           tiny_activation(step.index, held.lease.shard));
      result.activations.push_back(
          pack_activations(step.examples, hidden_, {units.begin, units.size()}, activations));
    }
  }
  replies.emplace_back(std::move(result));
  std::move(commits.begin(), commits.end(), std::back_inserter(replies));
  return replies;
}

std::vector<Message> HonestVolunteer::reply(const EvalUnit& unit) {
  const auto codes = unpack_quantized(*unit.hidden);
  EvalResult result;
  result.unit = unit.unit;
  std::vector<std::uint32_t> neurons;
  for (const LeaseRef& lease : unit.leases) {
    const NeuronRange range = map_.neurons(lease.shard);
    for (std::uint32_t n = range.begin; n < range.end; ++n) neurons.push_back(n);
  }
  result.top_k = std::min<std::uint32_t>(unit.top_k, static_cast<std::uint32_t>(neurons.size()));
  for (std::uint32_t example = 0; example < codes->examples; ++example) {
    for (std::uint32_t k = 0; k < result.top_k; ++k) result.best.push_back({neurons[k], 1.0F});
  }
  return {result};
}

std::vector<Message> HonestVolunteer::reply(const ReleaseRequest& release) {
  const Held held = held_.at(release.lease.shard);
  held_.erase(release.lease.shard);
  if (hidden_ == 0) {
    return {HandOver{release.lease, held.next_commit, held.next_batch, 0, 1, ShardRows()}};
  }
  std::vector<Message> parts;
  for (std::uint32_t part = 0; part < parts_; ++part) {
    parts.emplace_back(HandOver{release.lease, held.next_commit, held.next_batch, part, parts_,
                                tiny_rows(map_, release.lease.shard, part)});
  }
  return parts;
}

std::vector<Message> HonestVolunteer::reply(const Revoke& revoke) {
  held_.erase(revoke.lease.shard);
  return {};
}

}  // namespace gleaner
