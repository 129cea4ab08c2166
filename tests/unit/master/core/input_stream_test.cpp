#include "master/core/input_stream.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "common/limits.hpp"
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "master/core/pipeline.hpp"
#include "tests/support/tiny_run.hpp"
#include "tests/unit/master/core/stream_bench.hpp"

namespace gleaner {

TEST_CASE("input stream: a holder's steps come in the order of the arithmetic", "[input_stream]") {
  REQUIRE(order_at_lag(0) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 ");
  REQUIRE(order_at_lag(2) == "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 ");
}

TEST_CASE("input stream: an update waits for its gradients, and what follows it waits too",
          "[input_stream]") {
  Bench bench;
  bench.forward(0, 1);
  bench.stream.push(BackwardTask{0, 0.5F, nullptr, nullptr});
  bench.forward(2, 2);
  REQUIRE(bench.text(bench.issue()) == "4 5 F0 F1");
  REQUIRE(bench.stands_before == 0);
  REQUIRE(bench.issue().steps.empty());
  bench.ready(0);
  const InputStream::Unit unit = bench.issue();
  REQUIRE(bench.text(unit) == "4 5 B0 F2");
  REQUIRE(bench.stands_before == 1);
  const std::vector<InputStep> steps = bench.stream.steps_of(unit);
  REQUIRE(steps[0].rate == 0.5F);
  REQUIRE(steps[0].examples == 2);
  REQUIRE(steps[0].gradients.size() == 2);
  REQUIRE(*steps[0].gradients[0] == *bench.gradient(0, kFour));
  REQUIRE(*steps[0].gradients[1] == *bench.gradient(0, kFive));
  REQUIRE(steps[1].gradients.empty());
}

TEST_CASE("input stream: a unit has as many steps as it may, and no more cells than fit",
          "[input_stream]") {
  Bench bench;
  bench.forward(0, 2);
  REQUIRE(bench.text(bench.issue(bench.all, 2)) == "4 5 F0 F1");
  REQUIRE(bench.text(bench.issue(bench.all, 2)) == "4 5 F2");
  REQUIRE(bench.issue().steps.empty());

  ModelConfig model = tiny_model();
  model.hidden = kHiddenMax;
  model.batch_examples = kUnitCellsMax / kHiddenMax / 2;
  model.points = std::uint64_t{4} * model.batch_examples;
  model.round_batches = 4;
  Bench large(model);
  large.forward(0, 2);
  REQUIRE(large.text(large.issue()) == "4 F0 F1");
  REQUIRE(large.text(large.issue()) == "4 F2");
}

TEST_CASE("input stream: shards at different places are served furthest behind first",
          "[input_stream]") {
  Bench bench;
  bench.forward(0, 1);
  const std::vector<ShardId> five{kFive};
  REQUIRE(bench.text(bench.issue(five)) == "5 F0 F1");
  bench.update(0);
  bench.forward(2, 2);
  // Shard 4 catches up on its own; then both go on together.
  REQUIRE(bench.text(bench.issue(bench.all, 2)) == "4 F0 F1");
  REQUIRE(bench.text(bench.issue()) == "4 5 B0 F2");
}

TEST_CASE("input stream: a new holder at a checkpoint does every update and no known step",
          "[input_stream]") {
  Bench bench(two_shards(), 3);
  bench.forward(3, 4);
  bench.answer(bench.issue());
  REQUIRE(bench.whole() == "F3 F4");
  bench.update(3);
  bench.update(4);
  bench.forward(5, 6);
  REQUIRE(bench.text(bench.issue()) == "4 5 B3 B4 F5 F6");  // whose answer is lost for shard 4
  bench.stream.begin(kFour, 3);
  REQUIRE(bench.text(bench.issue()) == "4 B3 B4 F5 F6");
  REQUIRE(bench.stands_before == 5);
}

TEST_CASE("input stream: a new holder in the middle of a round begins where the last one stopped",
          "[input_stream]") {
  Bench bench;
  bench.forward(0, 1);
  bench.update(0);
  bench.forward(2, 2);
  const InputStream::Unit lost = bench.issue(bench.all, 3);
  REQUIRE(bench.text(lost) == "4 5 F0 F1 B0");
  bench.answer(lost);
  bench.update(1);
  bench.update(2);
  // Handed over before batch 1; the forward pass of batch 2 is after that update.
  bench.stream.begin(kFour, 1);
  const std::vector<ShardId> four{kFour};
  REQUIRE(bench.text(bench.issue(four)) == "4 F2 B1 B2");
  // Handed over before batch 3: nothing is left, until there is more.
  bench.stream.begin(kFour, 3);
  REQUIRE(bench.issue(four).steps.empty());
  bench.forward(3, 3);
  REQUIRE(bench.text(bench.issue(four)) == "4 F3");
}

TEST_CASE("input stream: a step that only some shards are to do is a unit of their own",
          "[input_stream]") {
  Bench bench;
  bench.forward(0, 1);
  bench.update(0);
  bench.forward(2, 2);
  bench.update(1);
  const std::vector<ShardId> four{kFour};
  bench.answer(bench.issue(four));  // F0 F1 B0 F2 B1
  bench.stream.begin(kFour, 0);
  // Both again from the beginning: of shard 4 all activations are known, of shard 5 none.
  REQUIRE(bench.text(bench.issue(bench.all, 2)) == "5 F0 F1");
  REQUIRE(bench.text(bench.issue()) == "4 5 B0");
  REQUIRE(bench.text(bench.issue()) == "5 F2 B1");
  REQUIRE(bench.text(bench.issue()) == "4 B1");
  REQUIRE(bench.issue().steps.empty());
}

TEST_CASE("input stream: activations are taken whole, in order, and once", "[input_stream]") {
  Bench bench;
  bench.forward(0, 2);
  const std::vector<ShardId> four{kFour};
  const std::vector<ShardId> five{kFive};
  const InputStream::Unit first = bench.issue(four, 1);
  const InputStream::Unit second = bench.issue(four, 1);
  bench.answer(second);
  REQUIRE(bench.whole().empty());
  bench.answer(first);
  REQUIRE(bench.whole().empty());
  const InputStream::Unit others = bench.issue(five, 2);
  bench.answer(others);
  REQUIRE(bench.whole() == "F0 F1");
  REQUIRE(bench.whole().empty());
  bench.update(0);
  const InputStream::Unit rest = bench.issue(five);
  REQUIRE(bench.text(rest) == "5 F2 B0");
  bench.answer(rest);
  REQUIRE(bench.whole().empty());
  bench.answer(bench.issue(four));
  REQUIRE(bench.whole() == "F2");
}

TEST_CASE("input stream: an evaluation's steps stand between two rounds", "[input_stream]") {
  Bench bench;
  bench.forward(0, 2);
  bench.answer(bench.issue());
  REQUIRE(bench.whole() == "F0 F1 F2");
  for (const BatchIndex batch : {0u, 1u, 2u}) bench.update(batch);
  bench.stream.push(EvalForwardTask{0, 4});
  bench.stream.push(EvalForwardTask{4, 5});
  const InputStream::Unit unit = bench.issue();
  REQUIRE(bench.text(unit) == "4 5 B0 B1 B2 S0 S4");
  REQUIRE(bench.stands_before == 3);
  REQUIRE(bench.stream.steps_of(unit)[4].examples == 1);
  REQUIRE(bench.stream.missing()->kind == InputStep::Kind::kScore);
  bench.answer(unit);
  REQUIRE(bench.whole() == "S0 S4");
  bench.forward(3, 3);
  REQUIRE(bench.text(bench.issue()) == "4 5 F3");
  REQUIRE(bench.stands_before == 3);
}

TEST_CASE("input stream: what is missing is named, first step first", "[input_stream]") {
  Bench bench;
  REQUIRE_FALSE(bench.stream.missing());
  bench.forward(0, 1);
  REQUIRE(bench.stream.missing()->shards == bench.all);
  const std::vector<ShardId> four{kFour};
  bench.answer(bench.issue(four));
  REQUIRE(bench.stream.missing()->kind == InputStep::Kind::kForward);
  REQUIRE(bench.stream.missing()->index == 0);
  REQUIRE(bench.stream.missing()->shards == std::vector<ShardId>{kFive});
  const std::vector<ShardId> five{kFive};
  bench.answer(bench.issue(five, 1));
  REQUIRE(bench.whole() == "F0");
  REQUIRE(bench.stream.missing()->index == 1);
  bench.answer(bench.issue(five));
  REQUIRE(bench.whole() == "F1");
  bench.update(0);
  REQUIRE_FALSE(bench.stream.missing());
}

TEST_CASE("input stream: a folded round is forgotten, and whoever stands behind it goes on",
          "[input_stream]") {
  Bench bench;
  bench.forward(0, 2);
  bench.answer(bench.issue());
  bench.stream.forget_before(3);  // nothing of it has been taken
  REQUIRE(bench.stream.size() == 3);
  REQUIRE(bench.whole() == "F0 F1 F2");
  for (const BatchIndex batch : {0u, 1u, 2u}) bench.update(batch);
  bench.forward(3, 4);
  const std::vector<ShardId> four{kFour};
  const std::vector<ShardId> five{kFive};
  REQUIRE(bench.text(bench.issue(four)) == "4 B0 B1 B2 F3 F4");
  REQUIRE(bench.text(bench.issue(five, 3)) == "5 B0 B1 B2");
  bench.stream.forget_before(3);
  REQUIRE(bench.stream.size() == 2);
  REQUIRE(bench.text(bench.issue()) == "5 F3 F4");
  // A new holder's place is found as before.
  bench.stream.begin(kFour, 3);
  const InputStream::Unit again = bench.issue(four);
  REQUIRE(bench.text(again) == "4 F3 F4");
  bench.answer(again);
  bench.update(3);
  bench.stream.forget_before(3);
  REQUIRE(bench.stream.size() == 3);
  bench.stream.begin(kFour, 4);  // beyond all that was pushed
  REQUIRE(bench.issue(four).steps.empty());
}

TEST_CASE("input stream: what does not fit a unit is refused, and nothing of it counts",
          "[input_stream]") {
  Bench bench;
  bench.forward(0, 1);
  const InputStream::Unit unit = bench.issue();
  const std::vector<Bytes> honest = bench.answers_to(unit);
  REQUIRE(honest.size() == 4);
  const auto refused = [&](std::vector<Bytes> lie) {
    const Result<void> added = bench.stream.add(unit, lie);
    REQUIRE_FALSE(added.ok());
    REQUIRE(added.error().code == ErrorCode::kProtocol);
    REQUIRE(bench.stream.missing()->shards == bench.all);
    REQUIRE(bench.stream.take_whole().empty());
  };
  refused({});
  std::vector<Bytes> lie = honest;
  lie.pop_back();
  refused(lie);
  lie = honest;
  lie.push_back(honest[0]);
  refused(lie);
  lie = honest;
  lie[3].pop_back();
  refused(lie);
  lie[3].clear();
  refused(lie);
  lie = honest;
  lie[3][0] = 1;  // of one example
  refused(lie);
  bench.answer(unit);
  REQUIRE(bench.whole() == "F0 F1");
}

}  // namespace gleaner
