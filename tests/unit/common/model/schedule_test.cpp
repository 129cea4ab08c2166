#include <catch2/catch.hpp>
#include <string>

#include "common/model/run_plan.hpp"

namespace gleaner {
namespace {

ModelConfig some_model(std::uint32_t lag) {
  ModelConfig model;
  model.points = 18;
  model.features = 10;
  model.labels = 5;
  model.batch_examples = 2;
  model.epochs = 1;
  model.round_batches = 5;
  model.staleness = lag;
  return model;
}

// "F0 B0 C0 ": forward and backward steps of batches, commits of rounds.
std::string order_from(RoundIndex checkpoint, const ModelConfig& model) {
  const RunPlan plan(model);
  Schedule schedule(plan, checkpoint);
  std::string order;
  while (const auto step = schedule.next()) {
    order += "FBC"[static_cast<std::size_t>(step->kind)] + std::to_string(step->index) + ' ';
    schedule.advance();
  }
  return order;
}

}  // namespace

TEST_CASE("schedule: forward passes run ahead by the lag, within a round", "[schedule]") {
  REQUIRE(order_from(0, some_model(2)) ==
          "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 C0 F5 F6 F7 B5 F8 B6 B7 B8 C1 ");
  REQUIRE(order_from(0, some_model(0)) ==
          "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 C0 F5 B5 F6 B6 F7 B7 F8 B8 C1 ");
  REQUIRE(order_from(0, some_model(99)) ==
          "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4 C0 F5 F6 F7 F8 B5 B6 B7 B8 C1 ");
}

TEST_CASE("schedule: updates go on while forward passes have to wait", "[schedule]") {
  const RunPlan plan(some_model(99));
  Schedule schedule(plan, 0);
  for (int i = 0; i < 2; ++i) schedule.advance(2);
  REQUIRE(schedule.next(2)->kind == Schedule::Kind::kBackward);
  REQUIRE(schedule.next(3)->kind == Schedule::Kind::kForward);
}

TEST_CASE("schedule: it begins at a checkpoint and ends with the run", "[schedule]") {
  REQUIRE(order_from(1, some_model(2)) == "F5 F6 F7 B5 F8 B6 B7 B8 C1 ");
  REQUIRE(order_from(2, some_model(2)).empty());
}

TEST_CASE("schedule: a lag that rises lets more and more forward passes run ahead", "[schedule]") {
  ModelConfig model = some_model(3);
  model.staleness_rise = 3;  // 1 for three batches, then 2, then 3
  model.round_batches = 9;
  REQUIRE(order_from(0, model) == "F0 F1 B0 F2 F3 B1 F4 B2 F5 F6 B3 F7 B4 F8 B5 B6 B7 B8 C0 ");
}

}  // namespace gleaner
