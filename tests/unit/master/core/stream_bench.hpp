// An InputStream driven by hand.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "common/limits.hpp"
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "master/core/input_stream.hpp"
#include "master/core/pipeline.hpp"
#include "tests/support/tiny_run.hpp"

namespace gleaner {

// Two input shards, 4 and 5, of 16 hidden units each.
inline ModelConfig two_shards() {
  ModelConfig model = tiny_model();
  model.hidden = 32;
  model.input_shards = 2;
  return model;
}

inline constexpr ShardId kFour{4};
inline constexpr ShardId kFive{5};

// A stream driven by hand, its shards with a holder each from the beginning.
struct Bench {
  explicit Bench(const ModelConfig& config = two_shards(), BatchIndex next_batch = 0)
      : model(config), plan(model), map(model), stream(plan, map, next_batch) {
    for (std::uint32_t i = 0; i < map.input_shards(); ++i) {
      all.push_back(map.input_shard(i));
      stream.begin(all.back(), next_batch);
    }
  }

  void forward(BatchIndex first, BatchIndex last) {
    for (BatchIndex batch = first; batch <= last; ++batch) stream.push(ForwardTask{batch});
  }

  // Different bytes for every batch and shard.
  [[nodiscard]] SharedBytes gradient(BatchIndex batch, ShardId shard) const {
    return std::make_shared<const Bytes>(
        Bytes{static_cast<std::uint8_t>(batch), static_cast<std::uint8_t>(raw(shard))});
  }

  void ready(BatchIndex batch) {
    std::vector<SharedBytes> packed;
    for (const ShardId shard : all) packed.push_back(gradient(batch, shard));
    stream.gradients_ready(batch, std::move(packed));
  }

  // The update of a batch whose gradients are here.
  void update(BatchIndex batch) {
    stream.push(BackwardTask{batch, 0.5F, nullptr, nullptr});
    ready(batch);
  }

  [[nodiscard]] std::string text(const InputStream::Unit& unit) const {
    if (unit.steps.empty()) return "";
    std::string line;
    for (const ShardId shard : unit.shards) line += std::to_string(raw(shard)) + ' ';
    for (const InputStep& step : stream.steps_of(unit)) {
      line += "FBS"[static_cast<std::size_t>(step.kind)] + std::to_string(step.index) + ' ';
    }
    line.pop_back();
    return line;
  }

  // Issues what is next.
  InputStream::Unit issue(std::span<const ShardId> ready, std::uint32_t steps_max = 8) {
    InputStream::Unit unit = stream.next_unit(ready, steps_max);
    if (!unit.steps.empty()) stands_before = stream.issued(unit);
    return unit;
  }

  InputStream::Unit issue() { return issue(all); }

  [[nodiscard]] static float activation(std::uint64_t index, ShardId shard) {
    return static_cast<float>(100 * (index + 1) + raw(shard));
  }

  [[nodiscard]] std::vector<Bytes> answers_to(const InputStream::Unit& unit) const {
    std::vector<Bytes> answers;
    for (const InputStep& step : stream.steps_of(unit)) {
      if (step.kind == InputStep::Kind::kBackward) continue;
      for (const ShardId shard : unit.shards) {
        const NeuronRange units = map.neurons(shard);
        const std::vector<float> values(std::size_t{step.examples} * model.hidden,
                                        activation(step.index, shard));
        answers.push_back(
            pack_activations(step.examples, model.hidden, {units.begin, units.size()}, values));
      }
    }
    return answers;
  }

  void answer(const InputStream::Unit& unit) { REQUIRE(stream.add(unit, answers_to(unit)).ok()); }

  // The activations that are whole now.
  std::string whole() {
    std::string line;
    for (const EncodeTask& task : stream.take_whole()) {
      line += (task.is_held_out ? "S" : "F") + std::to_string(task.begin) + ' ';
      REQUIRE(task.activations->size() == (task.end - task.begin) * model.hidden);
      for (std::size_t i = 0; i < task.activations->size(); ++i) {
        const ShardId shard = all[i % model.hidden / 16];
        REQUIRE((*task.activations)[i] == activation(task.begin, shard));
      }
    }
    if (!line.empty()) line.pop_back();
    return line;
  }

  ModelConfig model;
  RunPlan plan;
  ShardMap map;
  InputStream stream;
  std::vector<ShardId> all;
  BatchIndex stands_before = 0;  // after the last unit that was issued
};

// The steps that one holder of the whole layer is given, one by one, where all others answer at
// once.
inline std::string order_at_lag(std::uint32_t lag) {
  ModelConfig model = tiny_model();
  model.round_batches = 5;
  model.epochs = 1;
  model.staleness = lag;
  Bench bench(model);
  Pipeline pipeline(bench.plan, bench.map, 0);
  std::string order;
  while (pipeline.applied() < bench.plan.batch_count()) {
    for (const WorkerTask& task : pipeline.advance(1)) {
      if (const auto* t = std::get_if<ForwardTask>(&task)) bench.stream.push(*t);
      if (const auto* t = std::get_if<BackwardTask>(&task)) {
        bench.stream.push(*t);
        bench.ready(t->batch);
        pipeline.backward_done(t->batch);
      }
    }
    const InputStream::Unit unit = bench.issue(bench.all, 1);
    if (unit.steps.empty()) continue;
    order += bench.text(unit).substr(2) + ' ';
    bench.answer(unit);
    for (const EncodeTask& task : bench.stream.take_whole()) {
      auto codes =
          std::make_shared<QuantizedActivations>(tiny_codes(bench.plan, task.begin, model.hidden));
      const Bytes gradient =
          pack_gradient(*codes, std::vector<std::int32_t>(codes->codes.size(), 1));
      ForwardDone done{task.begin, std::make_shared<const Bytes>(pack(*codes)), codes, 1.0, {}};
      done.positives.offsets.resize(codes->examples + 1);
      pipeline.forward_done(done);
      for (std::uint32_t s = 0; s < bench.map.output_shards(); ++s) {
        const auto parts =
            pipeline.add_results({{task.begin, {{ShardId{s}, 1, 1, 1}}, gradient}}, true);
        REQUIRE(parts.ok());
        for (const AddGradientsTask::Part& part : *parts) {
          REQUIRE(add_gradient(*part.codes, *part.packed, *part.sum).ok());
        }
      }
    }
  }
  while (true) {
    const InputStream::Unit unit = bench.issue(bench.all, 1);
    if (unit.steps.empty()) return order;
    order += bench.text(unit).substr(2) + ' ';
  }
}

}  // namespace gleaner
