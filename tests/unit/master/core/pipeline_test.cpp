#include "master/core/pipeline.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "tests/support/tiny_run.hpp"

namespace gleaner {
namespace {

// A pipeline with its plan, driven by hand.
struct PipelineBench {
  explicit PipelineBench(const ModelConfig& config, RoundIndex checkpoint = 0)
      : model(config), plan(model), map(model), pipeline(plan, map, checkpoint) {}

  // Takes over what the pipeline wants done.
  void advance(RoundIndex rounds_open = 1000) {
    for (WorkerTask& task : pipeline.advance(rounds_open)) {
      if (const auto* t = std::get_if<ForwardTask>(&task)) order += "F" + std::to_string(t->batch);
      if (const auto* t = std::get_if<BackwardTask>(&task)) order += "B" + std::to_string(t->batch);
      if (const auto* t = std::get_if<CommitInputTask>(&task)) {
        order += "C" + std::to_string(t->round);
      }
      order += ' ';
      tasks.push_back(std::move(task));
    }
  }

  // Does the oldest task that was asked for.
  void work() {
    const WorkerTask task = std::move(tasks.at(done++));
    if (const auto* forward = std::get_if<ForwardTask>(&task)) {
      ForwardDone answer;
      answer.batch = forward->batch;
      answer.codes =
          std::make_shared<QuantizedActivations>(tiny_codes(plan, forward->batch, model.hidden));
      answer.packed = std::make_shared<const Bytes>(pack(*answer.codes));
      answer.positives.offsets.resize(answer.codes->examples + 1);
      pipeline.forward_done(answer);
    } else if (const auto* backward = std::get_if<BackwardTask>(&task)) {
      last_gradient = *backward->gradient;
      pipeline.backward_done(backward->batch);
    }
  }

  [[nodiscard]] Bytes gradient(BatchIndex batch, std::int32_t entry) const {
    const QuantizedActivations codes = tiny_codes(plan, batch, model.hidden);
    return pack_gradient(codes, std::vector<std::int32_t>(codes.codes.size(), entry));
  }

  Result<void> answer(BatchIndex batch, std::uint32_t shard, std::int32_t entry,
                      bool with_gradient = true) {
    const ShardOutcome outcome{ShardId{shard}, static_cast<std::uint64_t>(entry), 1 << 20, 3};
    return add({{batch, {outcome}, with_gradient ? gradient(batch, entry) : Bytes{}}},
               with_gradient);
  }

  // Results are taken, and what the worker is to add is added.
  Result<void> add(std::vector<BatchResult> results, bool has_gradient, bool is_audited = false) {
    const auto parts = pipeline.add_results(std::move(results), has_gradient, is_audited);
    if (!parts) return parts.error();
    REQUIRE(parts->empty() == !has_gradient);
    for (const AddGradientsTask::Part& part : *parts) {
      REQUIRE(add_gradient(*part.codes, *part.packed, *part.sum).ok());
    }
    return {};
  }

  void cover(BatchIndex batch) {
    for (std::uint32_t shard = 0; shard < map.output_shards(); ++shard) {
      REQUIRE(answer(batch, shard, tiny_gradient(batch, ShardId{shard})).ok());
    }
  }

  // Forward passes of the first batches, nothing answered.
  void start() {
    advance();
    while (done < tasks.size()) work();
  }

  ModelConfig model;
  RunPlan plan;
  ShardMap map;
  Pipeline pipeline;
  std::vector<WorkerTask> tasks;
  std::size_t done = 0;
  std::string order;
  std::vector<std::int32_t> last_gradient;
};

// The order as the header promises it.
std::string promised_order(const RunPlan& plan, std::uint32_t lag) {
  std::string order;
  const auto add = [&](char kind, std::uint64_t number) {
    order += kind + std::to_string(number) + ' ';
  };
  for (RoundIndex round = 0; round < plan.round_count(); ++round) {
    const BatchIndex begin = plan.round_begin(round);
    const BatchIndex end = plan.round_end(round);
    for (BatchIndex t = begin; t < std::min(begin + lag + 1, end); ++t) add('F', t);
    for (BatchIndex t = begin; t < end; ++t) {
      add('B', t);
      // The round's commit follows its last update; no forward pass is left by then.
      if (t + lag + 1 < end) add('F', t + lag + 1);
    }
    add('C', round);
  }
  return order;
}

}  // namespace

TEST_CASE("pipeline: the order of tasks is a function of the plan, for any lag and round",
          "[pipeline]") {
  for (const std::uint32_t lag : {0u, 1u, 2u, 3u, 16u}) {
    for (const std::uint32_t round : {1u, 2u, 3u, 5u, 7u}) {
      INFO("lag " << lag << ", rounds of " << round);
      ModelConfig model = tiny_model();
      model.staleness = lag;
      model.round_batches = round;
      PipelineBench bench(model);
      BatchIndex next = 0;
      // Shards answer as late as possible: only when nothing else can move.
      while (next < bench.plan.batch_count()) {
        bench.start();
        bench.cover(next++);
      }
      bench.start();
      REQUIRE(bench.order == promised_order(bench.plan, lag));
      REQUIRE(bench.pipeline.applied() == bench.plan.batch_count());
    }
  }
}

TEST_CASE("pipeline: answers that come early or out of order change nothing in it", "[pipeline]") {
  ModelConfig model = tiny_model();
  model.staleness = 2;
  PipelineBench bench(model);
  bench.advance();
  // Backwards over everything that is in flight, while the worker lags behind.
  while (bench.pipeline.applied() < bench.plan.batch_count()) {
    const BatchIndex frontier = bench.pipeline.frontier();
    for (BatchIndex t = frontier; t-- > bench.pipeline.applied();) {
      if (bench.pipeline.at(t).covered_count == 0) bench.cover(t);
    }
    bench.advance();
    if (bench.done < bench.tasks.size()) bench.work();
  }
  bench.advance();
  REQUIRE(bench.order == promised_order(bench.plan, 2));
}

TEST_CASE("pipeline: a round of five at lag two, spelled out", "[pipeline]") {
  ModelConfig model = tiny_model();
  model.staleness = 2;
  model.round_batches = 5;
  model.epochs = 1;
  PipelineBench bench(model);
  for (BatchIndex t = 0; t < 5; ++t) {
    bench.start();
    bench.cover(t);
  }
  bench.start();
  REQUIRE(bench.order == "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 C0 ");
}

TEST_CASE("pipeline: it starts at the checkpoint", "[pipeline]") {
  PipelineBench bench(tiny_model(), 2);
  REQUIRE(bench.pipeline.frontier() == 5);
  REQUIRE(bench.pipeline.rounds_started() == 2);
  bench.advance();
  REQUIRE(bench.order == "F5 F6 ");
  REQUIRE(bench.pipeline.rounds_started() == 3);
}

TEST_CASE("pipeline: rounds that are not open are not started", "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.advance(0);
  REQUIRE(bench.order.empty());
  REQUIRE(bench.pipeline.rounds_started() == 0);
  for (BatchIndex t = 0; t < 3; ++t) {
    bench.advance(1);
    while (bench.done < bench.tasks.size()) bench.work();
    bench.cover(t);
  }
  bench.advance(1);
  REQUIRE(bench.order == "F0 F1 B0 F2 B1 B2 C0 ");
  bench.advance(2);
  REQUIRE(bench.order == "F0 F1 B0 F2 B1 B2 C0 F3 F4 ");
}

TEST_CASE("pipeline: an update gets the sum of all shards, each once", "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.start();
  std::int32_t sum = 0;
  for (std::uint32_t shard = 0; shard < 4; ++shard) sum += tiny_gradient(0, ShardId{shard});
  bench.cover(0);
  // A replay of a shard that has answered: the same digest, no gradient.
  REQUIRE(bench.answer(0, 2, tiny_gradient(0, ShardId{2}), false).ok());
  REQUIRE(bench.pipeline.at(0).covered_count == 4);
  REQUIRE(bench.pipeline.at(0).loss == 4 << 20);
  REQUIRE(bench.pipeline.at(0).active == 12);
  bench.start();
  REQUIRE(bench.last_gradient == std::vector<std::int32_t>(32, sum));
  // Also after the batch is applied.
  REQUIRE(bench.answer(0, 1, tiny_gradient(0, ShardId{1}), false).ok());
}

TEST_CASE("pipeline: one result may cover several shards", "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.start();
  const std::vector<ShardOutcome> outcomes = {{ShardId{1}, 11, 5, 1}, {ShardId{3}, 13, 6, 2}};
  REQUIRE(bench.add({{0, outcomes, bench.gradient(0, 24)}}, true).ok());
  REQUIRE(bench.pipeline.is_covered(0, ShardId{1}));
  REQUIRE(bench.pipeline.is_covered(0, ShardId{3}));
  REQUIRE_FALSE(bench.pipeline.is_covered(0, ShardId{0}));
  REQUIRE((*bench.pipeline.at(0).gradient)[0] == 24);
  REQUIRE(bench.pipeline.at(0).loss == 11);
}

TEST_CASE("pipeline: a replay that gives something else is a fault and leaves no trace",
          "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.start();
  REQUIRE(bench.answer(0, 0, 5).ok());
  // Shard 1 is new, shard 0 differs from before: neither may count.
  const std::vector<ShardOutcome> outcomes = {{ShardId{0}, 6, 1, 1}, {ShardId{1}, 7, 1, 1}};
  const auto result = bench.add({{0, outcomes, bench.gradient(0, 7)}}, true);
  REQUIRE_FALSE(result.ok());
  REQUIRE(result.error().code == ErrorCode::kFault);
  REQUIRE_THAT(result.error().message, Catch::Contains("batch 0 on shard 0"));
  REQUIRE_FALSE(bench.pipeline.is_covered(0, ShardId{1}));
  REQUIRE(bench.pipeline.at(0).covered_count == 1);
  REQUIRE((*bench.pipeline.at(0).gradient)[0] == 5);
  REQUIRE(bench.pipeline.at(0).loss == 1 << 20);
}

TEST_CASE("pipeline: what the audited have said convicts nobody", "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.start();
  const auto say = [&](std::uint64_t digest, bool is_audited) {
    return bench.add({{0, {{ShardId{0}, digest, 1, 1}}, {}}}, false, is_audited);
  };
  REQUIRE(say(1, true).ok());
  REQUIRE(say(2, true).ok());
  REQUIRE(say(3, false).ok());
  REQUIRE(say(3, false).ok());
  REQUIRE(say(4, false).error().code == ErrorCode::kFault);
}

TEST_CASE("pipeline: a malformed gradient leaves no trace", "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.start();
  REQUIRE(bench.answer(0, 0, 5).ok());
  Bytes broken = bench.gradient(0, 1000);
  broken.pop_back();
  const std::vector<ShardOutcome> outcome = {{ShardId{1}, 1, 1, 1}};
  const auto cut = bench.add({{0, outcome, broken}}, true);
  REQUIRE(cut.error().code == ErrorCode::kProtocol);
  broken = bench.gradient(0, 1000);
  broken[1] = 27;
  const auto wide = bench.add({{0, outcome, broken}}, true);
  REQUIRE(wide.error().code == ErrorCode::kProtocol);
  REQUIRE_FALSE(bench.pipeline.is_covered(0, ShardId{1}));
  REQUIRE(*bench.pipeline.at(0).gradient == std::vector<std::int32_t>(32, 5));
}

TEST_CASE("pipeline: a unit with one malformed gradient leaves no trace in its other batches",
          "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.start();
  Bytes broken = bench.gradient(1, 1000);
  broken.pop_back();
  const std::vector<ShardOutcome> outcome = {{ShardId{1}, 1, 1, 1}};
  const auto result = bench.add({{0, outcome, bench.gradient(0, 7)}, {1, outcome, broken}}, true);
  REQUIRE(result.error().code == ErrorCode::kProtocol);
  REQUIRE_FALSE(bench.pipeline.is_covered(0, ShardId{1}));
  REQUIRE(*bench.pipeline.at(0).gradient == std::vector<std::int32_t>(32, 0));
}

TEST_CASE("pipeline: a gradient for a batch that has been applied is refused", "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.start();
  bench.cover(0);
  bench.advance();
  const auto late = bench.answer(0, 0, tiny_gradient(0, ShardId{0}));
  REQUIRE(late.error().code == ErrorCode::kProtocol);
}

TEST_CASE("pipeline: the log forgets what is folded and keeps the rest", "[pipeline]") {
  PipelineBench bench(tiny_model());
  for (BatchIndex t = 0; t < 3; ++t) {
    bench.start();
    bench.cover(t);
  }
  bench.start();
  REQUIRE(bench.pipeline.log_size() == 5);  // the round, and two batches of the next
  bench.pipeline.forget_before(3);
  REQUIRE(bench.pipeline.log_size() == 2);
  REQUIRE(bench.pipeline.at(3).examples == 2);
}

TEST_CASE("pipeline: a unit carries the positives of its own shards only", "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.advance();
  ForwardDone done;
  done.batch = 0;
  done.codes = std::make_shared<QuantizedActivations>(tiny_codes(bench.plan, 0, 16));
  done.positives.offsets = {0, 3, 4};
  done.positives.neurons = {0, 5, 11, 4};  // shards 0, 1, 3; shard 1
  bench.pipeline.forward_done(done);
  const Positives some =
      bench.pipeline.positives_in(0, {{ShardId{1}, LeaseEpoch{1}}, {ShardId{3}, LeaseEpoch{2}}});
  REQUIRE(some.offsets == std::vector<std::uint32_t>{0, 2, 3});
  REQUIRE(some.neurons == std::vector<std::uint32_t>{5, 11, 4});
}

TEST_CASE("pipeline: a relay's sum counts once, for what it has promised alone", "[pipeline]") {
  constexpr RelayId kRelay{7};
  const std::vector<std::pair<SessionId, UnitId>> both{{SessionId{1}, UnitId{1}},
                                                       {SessionId{2}, UnitId{2}}};
  PipelineBench bench(tiny_model());
  bench.start();
  const auto promise = [&](std::uint64_t who, std::uint32_t shard) {
    const ShardOutcome outcome{ShardId{shard}, 5, 1 << 20, 3};
    return bench.pipeline.promise({UnitId{who}, {{0, {outcome}, {}}}, 0, true, {who}}, kRelay,
                                  SessionId{who}, Instant(Millis(who)));
  };
  REQUIRE(promise(1, 0).ok());
  REQUIRE(promise(2, 1).ok());
  REQUIRE(bench.pipeline.is_covered(0, ShardId{0}));
  REQUIRE(bench.pipeline.at(0).covered_count == 0);
  REQUIRE(bench.pipeline.overdue_relay(Instant(Millis(2))) == kRelay);
  REQUIRE_FALSE(bench.pipeline.overdue_relay(Instant(Millis(1))));

  const auto keep = [&](RelayId relay, auto units, Bytes gradient) {
    const auto part = bench.pipeline.keep_promise(relay, 0, units, std::move(gradient));
    return part ? ErrorCode{} : part.error().code;
  };
  // Another relay, a unit twice, a unit that nobody awaits, a batch that is not there.
  REQUIRE(keep(RelayId{8}, both, bench.gradient(0, 10)) == ErrorCode::kStaleLease);
  REQUIRE(keep(kRelay, std::vector{both[0], both[0]}, bench.gradient(0, 10)) ==
          ErrorCode::kStaleLease);
  REQUIRE(keep(kRelay, std::vector{both[0], {SessionId{3}, UnitId{3}}}, bench.gradient(0, 10)) ==
          ErrorCode::kStaleLease);
  REQUIRE_FALSE(bench.pipeline.keep_promise(kRelay, 999, both, bench.gradient(0, 10)).ok());
  REQUIRE(keep(kRelay, both, Bytes{1, 2, 3}) == ErrorCode::kProtocol);
  REQUIRE(bench.pipeline.at(0).covered_count == 0);

  const auto part = bench.pipeline.keep_promise(kRelay, 0, both, bench.gradient(0, 10));
  REQUIRE(part.ok());
  REQUIRE(part->check == add_checks(1, 2));
  REQUIRE(bench.pipeline.at(0).covered_count == 2);
  REQUIRE(bench.pipeline.at(0).active == 6);
  REQUIRE(keep(kRelay, both, bench.gradient(0, 10)) == ErrorCode::kStaleLease);
}

TEST_CASE("pipeline: what a lost relay had promised is to be asked for again", "[pipeline]") {
  PipelineBench bench(tiny_model());
  bench.start();
  const ShardOutcome outcome{ShardId{1}, 5, 1 << 20, 3};
  for (const std::uint64_t relay : {7u, 8u}) {
    ShardOutcome mine = outcome;
    mine.shard = ShardId{static_cast<std::uint32_t>(relay - 7)};
    REQUIRE(bench.pipeline
                .promise({UnitId{1}, {{0, {mine}, {}}}, 0, true, {0}}, RelayId{relay},
                         SessionId{relay}, {})
                .ok());
  }
  const auto broken = bench.pipeline.break_promises(RelayId{7});
  REQUIRE(broken == std::vector<std::pair<BatchIndex, ShardId>>{{0, ShardId{0}}});
  REQUIRE_FALSE(bench.pipeline.is_covered(0, ShardId{0}));
  REQUIRE(bench.pipeline.is_covered(0, ShardId{1}));
  // The next answer must be the same, and bring its gradient too.
  REQUIRE(bench.answer(0, 0, 6).error().code == ErrorCode::kFault);
  REQUIRE(bench.answer(0, 0, 5).ok());
  REQUIRE(bench.pipeline.at(0).covered_count == 1);
}

}  // namespace gleaner
