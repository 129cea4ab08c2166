// Input shards in the executor: what waits for points, what does not, and what is asked for.
#include "volunteer/input_work.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "common/work/input_parts.hpp"
#include "tests/support/replies.hpp"
#include "tests/support/tiny_run.hpp"
#include "tests/support/watched_memory.hpp"
#include "volunteer/executor.hpp"

namespace gleaner::volunteer {
namespace {

using Catch::Matchers::Contains;

constexpr LeaseRef kOutput{ShardId{1}, LeaseEpoch{3}};
constexpr LeaseRef kInput{ShardId{4}, LeaseEpoch{4}};  // the only one, behind four output shards

// An executor that has the tiny run's input shard, and the master's side of that.
struct InputBench {
  explicit InputBench(std::uint64_t memory_bytes = std::uint64_t{1} << 30,
                      const ModelConfig& config = tiny_model(), ExampleStoreOptions points = {})
      : model(config), plan(model), map(model), pool(1), executor(pool, memory_bytes, points) {
    begin();
  }

  void begin() {
    REQUIRE(executor.execute(Reset{model, {}, 5}).ok());
    const auto replies = done(grant());
    REQUIRE(replies.size() == 1);
    REQUIRE(std::get<ShardReady>(replies[0]).lease == kInput);
  }

  Result<std::vector<Message>> run(Message message) {
    return executor.execute(Work(std::move(message)));
  }

  std::vector<Message> done(Message message) {
    auto replies = run(std::move(message));
    if (!replies) FAIL(replies.error().message);
    return std::move(replies).value();
  }

  // Its replies, and then whatever points are asked for: all replies but these requests.
  std::vector<Message> done_with_points(const Message& message) {
    return replies_with_points(
        message, [this](const Message& next) { return done(next); },
        [](const PointsRequest& request) { return points(request); });
  }

  [[nodiscard]] LeaseGrant grant(LeaseRef lease = kInput) const {
    LeaseGrant message;
    message.lease = lease;
    if (map.is_output(lease.shard)) {
      message.label_counts.resize(map.neurons(lease.shard).size(), 1);
    }
    return message;
  }

  // Point p has the feature p % 8 only.
  static Points points(const PointsRequest& request) {
    Points message{request.set, request.points, {0}, {}, {}, {{0}, {}}};
    for (const std::uint64_t point : request.points) {
      message.features.push_back(static_cast<std::uint32_t>(point % 8));
      message.values.push_back(1.0F + static_cast<float>(point));
      message.offsets.push_back(static_cast<std::uint32_t>(message.features.size()));
    }
    return message;
  }

  [[nodiscard]] InputStep forward(BatchIndex batch) const {
    return {InputStep::Kind::kForward, batch, plan.examples_in(batch), 0, {}};
  }

  [[nodiscard]] InputStep backward(BatchIndex batch) const {
    const QuantizedActivations codes = tiny_codes(plan, batch, model.hidden);
    const std::vector<std::int32_t> gradient(codes.codes.size(), 100);
    const auto packed =
        std::make_shared<const Bytes>(pack_unit_gradient(codes, gradient, {0, model.hidden}));
    return {InputStep::Kind::kBackward,
            batch,
            plan.examples_in(batch),
            plan.rates(batch).input,
            {packed}};
  }

  static InputUnit unit(std::uint64_t id, std::vector<InputStep> steps) {
    return {UnitId{id}, {kInput}, std::move(steps)};
  }

  ModelConfig model;
  RunPlan plan;
  ShardMap map;
  ThreadPool pool;
  Executor executor;
};

}  // namespace

TEST_CASE("input work: a unit waits for its points, and nothing else waits for it",
          "[input_work]") {
  InputBench bench;
  bench.done(bench.grant(kOutput));
  const auto asked = bench.done(bench.unit(7, {bench.forward(0)}));
  const auto requests = of_type<PointsRequest>(asked);
  REQUIRE(requests.size() == asked.size());
  REQUIRE_FALSE(requests.empty());
  REQUIRE(requests[0].set == PointSet::kTraining);
  std::vector<std::uint64_t> own = bench.plan.points_of(0);
  std::sort(own.begin(), own.end());
  REQUIRE(requests[0].points == own);

  TrainUnit train{UnitId{9}, {kOutput}, {}};
  const QuantizedActivations codes = tiny_codes(bench.plan, 0, bench.model.hidden);
  Positives none;
  none.offsets.resize(codes.examples + 1);
  train.batches.push_back({0, std::make_shared<const Bytes>(pack(codes)), none, 0.1F});
  const auto trained = bench.done(train);
  REQUIRE(trained.size() == 1);
  REQUIRE(std::get<UnitResult>(trained[0]).unit == UnitId{9});

  // One of its points, then the other.
  REQUIRE(bench.done(InputBench::points({PointSet::kTraining, {own[0]}})).empty());
  const auto replies = bench.done(InputBench::points({PointSet::kTraining, {own[1]}}));
  REQUIRE(replies.size() == 1);
  const auto& result = std::get<InputResult>(replies[0]);
  REQUIRE(result.unit == UnitId{7});
  REQUIRE(result.activations.size() == 1);

  InputLayer layer(bench.model, bench.pool);
  const Points lists = InputBench::points({PointSet::kTraining, bench.plan.points_of(0)});
  std::vector<ExampleView> examples;
  for (std::size_t i = 0; i < 2; ++i) {
    examples.push_back(
        {{}, std::span(lists.features).subspan(i, 1), std::span(lists.values).subspan(i, 1)});
  }
  const std::vector<float> expected = layer.activations(examples, 0, {{kInput.shard}});
  REQUIRE(result.activations[0] ==
          pack_activations(2, bench.model.hidden, {0, bench.model.hidden}, expected));
}

TEST_CASE("input work: points of the batches to come are asked for ahead, each once",
          "[input_work]") {
  InputBench bench;
  std::multiset<std::uint64_t> asked;
  const auto requests = of_type<PointsRequest>(bench.done(bench.unit(1, {bench.forward(0)})));
  for (const PointsRequest& request : requests) {
    asked.insert(request.points.begin(), request.points.end());
  }
  REQUIRE(asked.size() == 10);  // the epoch's; the next one's are the same
  REQUIRE(std::set<std::uint64_t>(asked.begin(), asked.end()).size() == 10);
  for (const PointsRequest& request : requests) {
    REQUIRE(of_type<PointsRequest>(bench.done(InputBench::points(request))).empty());
  }
  const auto replies = bench.done(bench.unit(2, {bench.forward(1)}));
  REQUIRE(replies.size() == 1);
  REQUIRE(std::get<InputResult>(replies[0]).unit == UnitId{2});
}

TEST_CASE("input work: units are answered in their order, though the points of the first come last",
          "[input_work]") {
  InputBench bench;
  const auto requests = of_type<PointsRequest>(bench.done(bench.unit(1, {bench.forward(0)})));
  REQUIRE(bench.done(bench.unit(2, {bench.forward(1)})).empty());
  for (std::size_t i = requests.size() - 1; i > 0; --i) {
    REQUIRE(bench.done(InputBench::points(requests[i])).empty());
  }
  const auto results = of_type<InputResult>(bench.done(InputBench::points(requests[0])));
  REQUIRE(results.size() == 2);
  REQUIRE(results[0].unit == UnitId{1});
  REQUIRE(results[1].unit == UnitId{2});
}

TEST_CASE("input work: a result leaves before the commit it leads to", "[input_work]") {
  InputBench bench;
  bench.done_with_points(bench.unit(1, {bench.forward(0)}));
  bench.done(bench.unit(2, {bench.forward(1)}));
  bench.done(bench.unit(3, {bench.backward(0), bench.forward(2)}));
  const auto replies =
      bench.done(bench.unit(4, {bench.backward(1), bench.backward(2), bench.forward(3)}));
  REQUIRE(replies.size() >= 2);
  REQUIRE(std::get<InputResult>(replies[0]).unit == UnitId{4});
  REQUIRE(std::get<InputResult>(replies[0]).compute_us > 0);
  for (std::size_t i = 1; i < replies.size(); ++i) {
    REQUIRE(std::get<ShardCommit>(replies[i]).round == 0);
    REQUIRE(std::get<ShardCommit>(replies[i]).lease == kInput);
  }
}

TEST_CASE("input work: a hand-over comes after the units before it", "[input_work]") {
  InputBench bench;
  const auto requests = of_type<PointsRequest>(bench.done(bench.unit(1, {bench.forward(0)})));
  REQUIRE(bench.done(ReleaseRequest{kInput}).empty());
  const auto replies = bench.done(InputBench::points(requests[0]));
  REQUIRE(replies.size() == 2);
  REQUIRE(std::get<InputResult>(replies[0]).unit == UnitId{1});
  REQUIRE(std::get<HandOver>(replies[1]).lease == kInput);
  REQUIRE(std::get<HandOver>(replies[1]).next_batch == 0);
  REQUIRE(bench.run(bench.unit(2, {bench.forward(1)})).error().code == ErrorCode::kStaleLease);
}

TEST_CASE("input work: without units a shard is handed over at once", "[input_work]") {
  InputBench bench;
  REQUIRE(of_type<HandOver>(bench.done(ReleaseRequest{kInput})).size() == 1);
  REQUIRE(bench.run(ReleaseRequest{kInput}).error().code == ErrorCode::kStaleLease);
}

TEST_CASE("input work: held-out points are asked for as the evaluation orders them",
          "[input_work]") {
  InputBench bench;
  const InputStep score{InputStep::Kind::kScore, 40, 3, 0, {}};
  const auto asked = bench.done(bench.unit(1, {score}));
  REQUIRE(asked.size() == 1);
  const PointsRequest expected{PointSet::kTestSet, {40, 41, 42}};
  REQUIRE(std::get<PointsRequest>(asked[0]) == expected);
  REQUIRE(of_type<InputResult>(bench.done(InputBench::points(expected))).size() == 1);
}

TEST_CASE("input work: points without room are forgotten when their update is done",
          "[input_work]") {
  InputBench bench(std::uint64_t{1} << 30, tiny_model(), {"", 0, 0, {}});
  const std::uint64_t shard = bench.executor.held_bytes();
  bench.done_with_points(bench.unit(1, {bench.forward(0)}));
  const std::uint64_t ahead = bench.executor.held_bytes();
  REQUIRE(ahead == shard + 10 * 8);
  bench.done_with_points(bench.unit(2, {bench.forward(1)}));
  REQUIRE(bench.executor.held_bytes() == ahead);
  // The points of batch 0 are needed by an update, and by a batch of the next epoch that is near.
  const auto replies = bench.done(bench.unit(3, {bench.backward(0)}));
  REQUIRE(of_type<InputResult>(replies).size() == 1);
  std::vector<std::uint64_t> again;
  for (const PointsRequest& request : of_type<PointsRequest>(replies)) {
    again.insert(again.end(), request.points.begin(), request.points.end());
  }
  std::vector<std::uint64_t> released = bench.plan.points_of(0);
  std::sort(again.begin(), again.end());
  std::sort(released.begin(), released.end());
  REQUIRE(again == released);
}

TEST_CASE("input work: what does not fit is refused before any point is waited for",
          "[input_work]") {
  InputBench bench;
  const auto refused = [&](ErrorCode code, Message message) {
    const auto replies = bench.run(std::move(message));
    REQUIRE_FALSE(replies.ok());
    REQUIRE(replies.error().code == code);
    bench.begin();
  };
  refused(ErrorCode::kProtocol, bench.unit(1, {bench.forward(5)}));
  InputUnit other = bench.unit(1, {bench.forward(0)});
  other.leases[0].epoch = LeaseEpoch{9};
  refused(ErrorCode::kStaleLease, other);
  refused(ErrorCode::kProtocol, InputBench::points({PointSet::kTraining, {1}}));
  refused(ErrorCode::kProtocol, PointsRequest{PointSet::kTraining, {1}});
  bench.done(Revoke{kInput});
  refused(ErrorCode::kStaleLease, bench.unit(1, {bench.forward(0)}));
}

TEST_CASE("input work: no more units wait than a master within its limits sends", "[input_work]") {
  InputBench bench;
  const InputUnit unit = bench.unit(1, {bench.forward(0)});
  std::size_t waiting = 0;
  auto replies = bench.run(unit);
  for (; replies.ok() && waiting < 5000; ++waiting) replies = bench.run(unit);
  REQUIRE(waiting == 1024);
  REQUIRE(replies.error().code == ErrorCode::kBusy);
}

TEST_CASE("input work: a new connection forgets what waits, and keeps points", "[input_work]") {
  InputBench bench;
  const auto requests = of_type<PointsRequest>(bench.done(bench.unit(1, {bench.forward(0)})));
  for (std::size_t i = 1; i < requests.size(); ++i) bench.done(InputBench::points(requests[i]));
  bench.begin();
  const auto replies = bench.done(bench.unit(2, {bench.forward(0)}));
  REQUIRE(replies.size() == 1);
  REQUIRE(std::get<PointsRequest>(replies[0]) == requests[0]);
  const auto results = of_type<InputResult>(bench.done(InputBench::points(requests[0])));
  REQUIRE(results.size() == 1);
  REQUIRE(results[0].unit == UnitId{2});
}

TEST_CASE("input work: a lease beyond the memory limit is refused, points in memory counted",
          "[input_work]") {
  const std::uint64_t shard = InputTrainer::shard_bytes(tiny_model());
  InputBench bench(shard);
  bench.done_with_points(bench.unit(1, {bench.forward(0)}));
  const auto refused = bench.run(bench.grant({kInput.shard, LeaseEpoch{5}}));
  REQUIRE(refused.error().code == ErrorCode::kResources);
  REQUIRE_THAT(refused.error().message, Contains("shard 4 does not fit"));
}

TEST_CASE("input work: where memory ends, shards, units and points are given up", "[input_work]") {
  ModelConfig model = tiny_model();
  model.hidden = 4096;  // a shard's weights are the largest piece
  InputBench bench(std::uint64_t{1} << 40, model);
  const auto requests = of_type<PointsRequest>(bench.done(bench.unit(1, {bench.forward(0)})));
  bench.done(InputBench::points(requests.back()));
  {
    const test::ScarceMemory scarce(2 * 4096 * sizeof(float));
    const auto failed = bench.run(InputBench::points(requests[0]));
    REQUIRE_FALSE(failed.ok());
    REQUIRE(failed.error().code == ErrorCode::kResources);
  }
  REQUIRE(bench.executor.held_bytes() == 0);
  bench.begin();
  REQUIRE(of_type<InputResult>(bench.done_with_points(bench.unit(2, {bench.forward(0)}))).size() ==
          1);
}

TEST_CASE("input work: who holds no input shard pays nothing", "[input_work]") {
  ThreadPool pool(1);
  Executor executor(pool, 1 << 30);
  REQUIRE(executor.execute(Reset{tiny_model()}).ok());
  REQUIRE(executor.held_bytes() == 0);
}

}  // namespace gleaner::volunteer
