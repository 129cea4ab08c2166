// The master's side of a run whose input shards trainers hold: its points, the order of its steps,
// made-up gradients, a store that follows the commits, and beside it one layer that holds all.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/model/run_plan.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/input_trainer.hpp"
#include "tests/unit/common/train/input_examples.hpp"
#include "tests/unit/common/train/input_replica.hpp"

namespace gleaner::test {

// 2 input shards of 32 units; 2 epochs of 2 rounds of 4 and 3 batches, the last one short; lag 2.
inline ModelConfig input_run_config() {
  ModelConfig config = input_test_config();
  config.points = 8 * 7 - 3;
  config.input_shards = 2;
  config.epochs = 2;
  config.batch_examples = 8;
  config.staleness = 2;
  config.dropout = 0.25F;
  config.feature_dropout = 0.2F;
  return config;
}

struct InputRun {
  ModelConfig config;
  RunPlan plan{config};
  ShardMap map{config};
  ThreadPool pool{1};
  ActivationQuantizer coder{config, pool};
  InputLayer layer{config, pool};  // does all that the trainers do
  InputExamples points = make_input_examples(1, config.points, config.features, 20);
  std::vector<InputReplica> store;
  BatchIndex applied = 0;
  std::map<BatchIndex, QuantizedActivations> codes;

  explicit InputRun(const ModelConfig& model = input_run_config()) : config(model) {
    for (std::uint32_t s = 0; s < config.input_shards; ++s) store.emplace_back(config, s);
  }

  [[nodiscard]] LeaseRef lease(std::uint32_t place, std::uint64_t epoch = 1) const {
    return {map.input_shard(place), LeaseEpoch{epoch}};
  }

  [[nodiscard]] std::vector<ExampleView> examples_of(const InputStep& step) const {
    std::vector<ExampleView> examples;
    if (step.kind == InputStep::Kind::kScore) {
      for (std::size_t i = 0; i < step.examples; ++i) {
        examples.push_back(points.views[step.index + i]);
      }
      return examples;
    }
    for (const std::uint64_t point : plan.points_of(step.index)) {
      examples.push_back(points.views[point]);
    }
    return examples;
  }

  [[nodiscard]] InputStep forward(BatchIndex batch) const {
    return {InputStep::Kind::kForward, batch, plan.examples_in(batch), 0, {}};
  }

  // With the made-up gradient of the batch's codes.
  [[nodiscard]] InputStep backward(BatchIndex batch, const std::vector<LeaseRef>& leases) const {
    InputStep step{
        InputStep::Kind::kBackward, batch, plan.examples_in(batch), plan.rates(batch).input, {}};
    const QuantizedActivations& known = codes.at(batch);
    const std::vector<std::int32_t> gradient = make_gradient(batch, known);
    for (const LeaseRef& held : leases) {
      const NeuronRange units = map.neurons(held.shard);
      step.gradients.push_back(std::make_shared<const Bytes>(
          pack_unit_gradient(known, gradient, {units.begin, units.size()})));
    }
    return step;
  }

  // The updates that the forward pass of `batch` must have seen, then that pass; no pass behind the
  // last batch.
  [[nodiscard]] InputUnit unit(BatchIndex batch, const std::vector<LeaseRef>& leases) const {
    InputUnit unit{UnitId{batch}, leases, {}};
    const bool is_last = batch == plan.batch_count();
    const BatchIndex end = is_last ? batch : plan.applied_before(batch);
    for (BatchIndex b = applied; b < end; ++b) unit.steps.push_back(backward(b, leases));
    if (!is_last) unit.steps.push_back(forward(batch));
    return unit;
  }

  // The layer does the same; what it commits is added to the store.
  std::vector<SparseUpdate> advance(BatchIndex batch) {
    std::vector<SparseUpdate> commits;
    const bool is_last = batch == plan.batch_count();
    for (; applied < (is_last ? batch : plan.applied_before(batch)); ++applied) {
      const QuantizedActivations& known = codes.at(applied);
      layer.backward(applied, plan.rates(applied).input, examples_of(backward(applied, {})), known,
                     make_gradient(applied, known));
      if (!plan.is_round_end(applied + 1)) continue;
      for (InputReplica& shard : store) {
        std::vector<SparseUpdate> parts = layer.commit(shard.shard);
        shard.apply(parts);
        commits.insert(commits.end(), parts.begin(), parts.end());
      }
    }
    if (!is_last) codes[batch] = layer.forward(examples_of(forward(batch)), batch);
    return commits;
  }

  // A grant of the shard as the store has it, and its chunks: the rows, then those handed over.
  [[nodiscard]] LeaseGrant grant(const LeaseRef& held, RoundIndex base_round,
                                 const std::vector<HandOver>& parts,
                                 std::vector<ShardChunk>& chunks) const {
    const ShardRows& rows = store[raw(held.shard) - map.output_shards()].rows;
    chunks.assign(3, {});
    const std::size_t width = map.row_width(held.shard);
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      ShardRows& target = chunks[i * 3 / rows.rows.size()].rows;
      target.rows.push_back(rows.rows[i]);
      target.states.push_back(rows.states[i]);
      const auto at = rows.values.begin() + static_cast<std::ptrdiff_t>(i * width);
      target.values.insert(target.values.end(), at, at + static_cast<std::ptrdiff_t>(width));
    }
    for (const HandOver& part : parts) chunks.push_back({{}, 0, part.rows});
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      chunks[i].lease = held;
      chunks[i].chunk = static_cast<std::uint32_t>(i);
    }
    LeaseGrant grant;
    grant.lease = held;
    grant.base_round = base_round;
    grant.next_batch = parts.empty() ? plan.round_begin(base_round) : parts[0].next_batch;
    grant.base_chunks = 3;
    grant.chunks = static_cast<std::uint32_t>(chunks.size());
    return grant;
  }

  // The initial shards.
  void load_initial(InputTrainer& trainer, const std::vector<LeaseRef>& leases) const {
    for (const LeaseRef& held : leases) {
      LeaseGrant grant;
      grant.lease = held;
      REQUIRE(trainer.begin_load(grant).ok());
      REQUIRE(trainer.finish_load(held).ok());
    }
  }

  [[nodiscard]] InputTrainer::UnitOutcome run(InputTrainer& trainer, const InputUnit& unit) const {
    if (auto checked = trainer.check(unit); !checked) FAIL(checked.error().message);
    auto outcome = try_run(trainer, unit);
    if (!outcome) FAIL(outcome.error().message);
    return std::move(*outcome);
  }

  Result<InputTrainer::UnitOutcome> try_run(InputTrainer& trainer, const InputUnit& unit) const {
    std::vector<std::vector<ExampleView>> examples;
    for (const InputStep& step : unit.steps) examples.push_back(examples_of(step));
    const std::vector<std::span<const ExampleView>> spans(examples.begin(), examples.end());
    return trainer.run(unit, spans);
  }
};

}  // namespace gleaner::test
