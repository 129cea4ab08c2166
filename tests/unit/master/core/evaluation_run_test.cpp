#include <catch2/catch.hpp>
#include <string>

#include "master/core/evaluations.hpp"

namespace gleaner {
namespace {

const std::vector<ShardId> kBoth = {ShardId{0}, ShardId{1}};

// "E0-4 S0-4 X": what the worker is asked.
std::string asked(EvaluationRun& run) {
  std::string text;
  for (const WorkerTask& task : run.advance()) {
    if (!text.empty()) text += ' ';
    if (const auto* forward = std::get_if<EvalForwardTask>(&task)) {
      text += "E" + std::to_string(forward->begin) + "-" + std::to_string(forward->end);
    } else if (const auto* score = std::get_if<EvalScoreTask>(&task)) {
      text += "S" + std::to_string(score->begin) + "-" + std::to_string(score->end);
    } else {
      text += "X";
    }
  }
  return text;
}

void forward(EvaluationRun& run, std::uint64_t begin) {
  run.forward_done({begin, 0, std::make_shared<const Bytes>()});
}

void score(EvaluationRun& run, std::uint64_t begin, const std::vector<ShardId>& shards) {
  run.assigned(begin, shards);
  run.scored(begin, shards, {});
}

}  // namespace

TEST_CASE("evaluation: chunks cover the points, the last one is short", "[evaluation]") {
  EvaluationRun run(10, 4, 9, 2, 5);
  REQUIRE(asked(run) == "E0-4 E4-8 E8-10");
  REQUIRE(run.examples_in(8) == 2);
  REQUIRE(run.examples_in(3) == 0);
  REQUIRE(asked(run).empty());
}

TEST_CASE("evaluation: no more chunks are open than may be in flight", "[evaluation]") {
  EvaluationRun run(10, 2, 2, 1, 5);
  REQUIRE(asked(run) == "E0-2 E2-4");
  forward(run, 0);
  forward(run, 2);
  score(run, 0, {ShardId{0}});
  REQUIRE(asked(run) == "S0-2 E4-6");
}

TEST_CASE("evaluation: nothing is assigned before its forward pass", "[evaluation]") {
  EvaluationRun run(4, 2, 2, 2, 5);
  asked(run);
  REQUIRE(run.next_assignment(kBoth).shards.empty());
  forward(run, 2);
  REQUIRE(run.next_assignment(kBoth).begin == 2);
  forward(run, 0);
  REQUIRE(run.next_assignment(kBoth).begin == 0);
}

TEST_CASE("evaluation: a shard scores a chunk once", "[evaluation]") {
  EvaluationRun run(2, 2, 1, 2, 5);
  asked(run);
  forward(run, 0);
  REQUIRE(run.next_assignment(kBoth).shards == kBoth);
  run.assigned(0, {ShardId{0}});
  REQUIRE(run.next_assignment(kBoth).shards == std::vector{ShardId{1}});
  REQUIRE(run.next_assignment({ShardId{0}}).shards.empty());
  run.scored(0, {ShardId{0}}, {});
  REQUIRE(run.next_assignment({ShardId{0}}).shards.empty());
  REQUIRE(asked(run).empty());  // the other shard is awaited
}

TEST_CASE("evaluation: what a vanished holder was scoring comes again", "[evaluation]") {
  EvaluationRun run(2, 2, 1, 2, 5);
  asked(run);
  forward(run, 0);
  run.assigned(0, kBoth);
  REQUIRE(run.next_assignment(kBoth).shards.empty());
  run.unassigned(0, {ShardId{1}});
  REQUIRE(run.next_assignment(kBoth).shards == std::vector{ShardId{1}});
  run.scored(0, {ShardId{0}}, {});
  score(run, 0, {ShardId{1}});
  REQUIRE(asked(run) == "S0-2 X");
}

TEST_CASE("evaluation: chunks are scored in the order of their points", "[evaluation]") {
  EvaluationRun run(6, 2, 3, 1, 5);
  asked(run);
  for (const std::uint64_t begin : {0, 2, 4}) forward(run, begin);
  score(run, 4, {ShardId{0}});
  score(run, 2, {ShardId{0}});
  REQUIRE(asked(run).empty());
  REQUIRE(run.points_scored() == 0);
  score(run, 0, {ShardId{0}});
  REQUIRE(asked(run) == "S0-2 S2-4 S4-6 X");
  REQUIRE(run.points_scored() == 6);
  REQUIRE(asked(run).empty());  // the end comes once
}

TEST_CASE("evaluation: a chunk's lists and depth reach the worker", "[evaluation]") {
  EvaluationRun run(1, 1, 1, 2, 3);
  asked(run);
  forward(run, 0);
  run.assigned(0, kBoth);
  run.scored(0, {ShardId{1}}, {{7, 0.5F}});
  run.scored(0, {ShardId{0}}, {{2, 0.25F}});
  const auto tasks = run.advance();
  const auto& task = std::get<EvalScoreTask>(tasks.at(0));
  REQUIRE(task.top_k == 3);
  REQUIRE(task.lists == std::vector<std::vector<ScoredNeuron>>{{{7, 0.5F}}, {{2, 0.25F}}});
}

}  // namespace gleaner
