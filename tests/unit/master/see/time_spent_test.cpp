#include <catch2/catch.hpp>

#include "master/see/page_view.hpp"

namespace gleaner {
namespace {

// Ten batches per epoch, rounds of five.
RunPlan plan() {
  ModelConfig model;
  model.points = 100;
  model.batch_examples = 10;
  model.round_batches = 5;
  model.epochs = 2;
  return RunPlan(model);
}

RunStatus training(BatchIndex batch, BatchIndex next) {
  RunStatus s;
  s.progress.stage = RunStage::kTraining;
  s.wait_owner = WaitOwner::kVolunteers;
  s.progress.batch = batch;
  s.progress.round = static_cast<RoundIndex>(batch > 0 ? (batch - 1) / 5 : 0);
  s.shards.resize(2);
  for (ShardEntry& shard : s.shards) {
    shard.state = LeaseState::kReady;
    shard.next_batch = next;
  }
  return s;
}

Instant at(std::int64_t seconds) {
  return Instant(Micros(seconds * 1'000'000));
}

}  // namespace

TEST_CASE("time spent: each wait has its cause", "[http]") {
  const RunPlan p = plan();
  RunStatus s = training(3, 4);
  REQUIRE(time_use(s, p) == TimeUse::kTraining);
  s.is_held_up = true;
  REQUIRE(time_use(s, p) == TimeUse::kLate);
  s.shards[1].next_batch = 1;
  REQUIRE(time_use(s, p) == TimeUse::kReplay);
  s.shards[1].state = LeaseState::kLoading;
  REQUIRE(time_use(s, p) == TimeUse::kMoving);
  s.wait_owner = WaitOwner::kStore;
  REQUIRE(time_use(s, p) == TimeUse::kStore);
  s.progress.stage = RunStage::kWaiting;
  REQUIRE(time_use(s, p) == TimeUse::kNobody);
  s = training(3, 4);
  s.wait_owner = WaitOwner::kMaster;
  REQUIRE(time_use(s, p) == TimeUse::kMaster);
  s.progress.stage = RunStage::kEvaluating;
  REQUIRE(time_use(s, p) == TimeUse::kEvaluation);
}

TEST_CASE("time spent: a drained round waits for its commits", "[http]") {
  const RunPlan p = plan();
  REQUIRE(time_use(training(5, 5), p) == TimeUse::kCommit);
  REQUIRE(time_use(training(5, 6), p) == TimeUse::kTraining);  // the next round has begun
  RunStatus folded = training(5, 5);
  folded.progress.round = 1;
  REQUIRE(time_use(folded, p) == TimeUse::kTraining);
}

TEST_CASE("time spent: recent time forgets, all time does not, and gaps count as nothing",
          "[http]") {
  TimeSpent spent;
  spent.observe(TimeUse::kLate, at(1));
  for (std::int64_t s = 2; s <= 101; ++s) spent.observe(TimeUse::kLate, at(s));
  for (std::int64_t s = 102; s <= 441; ++s) spent.observe(TimeUse::kTraining, at(s));
  const auto late = static_cast<std::size_t>(TimeUse::kLate);
  const auto training_place = static_cast<std::size_t>(TimeUse::kTraining);
  REQUIRE(spent.all()[late] == Approx(100));
  REQUIRE(spent.all()[training_place] == Approx(340));
  REQUIRE(spent.recent()[late] == 0);
  REQUIRE(spent.recent()[training_place] == Approx(301));
  spent.observe(TimeUse::kLate, at(10'000));
  REQUIRE(spent.all()[late] == Approx(100));
}

}  // namespace gleaner
