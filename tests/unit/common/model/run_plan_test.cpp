#include "common/model/run_plan.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace gleaner {
namespace {

ModelConfig small_run() {
  ModelConfig config;
  config.points = 103;
  config.features = 10;
  config.labels = 20;
  config.batch_examples = 10;  // 11 batches an epoch, the last of 3 examples
  config.round_batches = 4;    // rounds of 4, 4 and 3 batches
  config.epochs = 2;
  config.staleness = 2;
  return config;
}

}  // namespace

TEST_CASE("run plan: epochs end on a round's end and short tails are kept", "[run_plan]") {
  const RunPlan plan(small_run());
  REQUIRE(plan.batch_count() == 22);
  REQUIRE(plan.round_count() == 6);
  REQUIRE(plan.round_begin(0) == 0);
  REQUIRE(plan.round_end(2) == 11);
  REQUIRE(plan.round_begin(3) == 11);
  REQUIRE(plan.round_begin(6) == 22);
  REQUIRE(plan.examples_in(10) == 3);
  REQUIRE(plan.examples_in(11) == 10);
  for (RoundIndex round = 0; round < plan.round_count(); ++round) {
    for (BatchIndex b = plan.round_begin(round); b < plan.round_end(round); ++b) {
      REQUIRE(plan.round_of(b) == round);
      REQUIRE(plan.is_round_end(b + 1) == (b + 1 == plan.round_end(round)));
    }
  }
  REQUIRE_FALSE(plan.ends_epoch(1));
  REQUIRE(plan.ends_epoch(2));
  REQUIRE(plan.ends_epoch(5));
  REQUIRE(plan.epochs_done(0) == 0);
  REQUIRE(plan.epochs_done(2) == 0);
  REQUIRE(plan.epochs_done(3) == 1);
  REQUIRE(plan.epochs_done(6) == 2);
}

TEST_CASE("run plan: a round may be several whole epochs", "[run_plan]") {
  ModelConfig config = small_run();
  config.epochs = 6;
  for (const std::uint32_t round_batches : {11u, 12u, 21u}) {
    config.round_batches = round_batches;
    REQUIRE(RunPlan(config).round_count() == 6);
    REQUIRE(RunPlan(config).round_end(0) == 11);
  }
  for (const std::uint32_t round_batches : {22u, 32u}) {
    config.round_batches = round_batches;
    const RunPlan plan(config);
    REQUIRE(plan.batch_count() == 66);
    REQUIRE(plan.round_count() == 3);
    for (RoundIndex round = 0; round < 3; ++round) {
      REQUIRE(plan.round_begin(round) == round * 22);
      REQUIRE(plan.ends_epoch(round));
      REQUIRE(plan.epochs_done(round + 1) == 2 * (round + 1));
      for (BatchIndex b = plan.round_begin(round); b < plan.round_end(round); ++b) {
        REQUIRE(plan.round_of(b) == round);
        REQUIRE(plan.is_round_end(b + 1) == (b + 1 == plan.round_end(round)));
      }
    }
    // An epoch's rates are as they were; the lag runs on over its end.
    REQUIRE(plan.epoch_of(11) == 1);
    REQUIRE(plan.examples_in(10) == 3);
    REQUIRE(plan.examples_in(21) == 3);
    REQUIRE(plan.points_of(11) != plan.points_of(0));
    REQUIRE(plan.applied_before(11) == 9);
    REQUIRE(plan.applied_before(22) == 22);
  }
  config.round_batches = 66;
  REQUIRE(RunPlan(config).round_count() == 1);
}

TEST_CASE("run plan: an epoch visits every point once, each epoch in an order of its own",
          "[run_plan]") {
  const RunPlan plan(small_run());
  std::vector<std::vector<std::uint64_t>> orders(2);
  for (BatchIndex batch = 0; batch < plan.batch_count(); ++batch) {
    for (const std::uint64_t point : plan.points_of(batch)) {
      orders[plan.epoch_of(batch)].push_back(point);
    }
  }
  REQUIRE(orders[0] != orders[1]);
  for (auto& order : orders) {
    std::sort(order.begin(), order.end());
    REQUIRE(order.size() == 103);
    for (std::uint64_t i = 0; i < 103; ++i) REQUIRE(order[i] == i);
  }
}

TEST_CASE("run plan: the lag is fixed inside a round and zero at its start", "[run_plan]") {
  const RunPlan plan(small_run());
  REQUIRE(plan.applied_before(0) == 0);
  REQUIRE(plan.applied_before(2) == 0);
  REQUIRE(plan.applied_before(3) == 1);
  REQUIRE(plan.applied_before(4) == 4);
  REQUIRE(plan.applied_before(7) == 5);
  REQUIRE(plan.applied_before(11) == 11);
}

TEST_CASE("run plan: the lag rises from one, by one every N batches", "[run_plan]") {
  ModelConfig config = small_run();
  config.staleness = 3;
  config.staleness_rise = 2;
  config.round_batches = 11;
  const RunPlan plan(config);
  const std::vector<std::uint32_t> lags = {1, 1, 2, 2, 3, 3, 3};
  const std::vector<BatchIndex> applied = {0, 0, 0, 1, 1, 2, 3};
  for (BatchIndex batch = 0; batch < lags.size(); ++batch) {
    REQUIRE(plan.lag(batch) == lags[batch]);
    REQUIRE(plan.applied_before(batch) == applied[batch]);
  }
  REQUIRE(plan.lag(21) == 3);
  config.staleness = 0;
  REQUIRE(RunPlan(config).lag(9) == 0);
}

TEST_CASE("run plan: rates warm up and decay by the batch index alone", "[run_plan]") {
  ModelConfig config = small_run();
  config.output_rate = 0.5F;
  config.input_rate = 0.25F;
  config.warmup_batches = 4;
  config.rate_decay = 0.5F;
  const RunPlan plan(config);
  REQUIRE(plan.rates(0).output == 0.125F);
  REQUIRE(plan.rates(3).output == 0.5F);
  REQUIRE(plan.rates(10).input == 0.25F);
  REQUIRE(plan.rates(11).input == 0.125F);
}

TEST_CASE("run plan: from each cut on the rates are half", "[run_plan]") {
  ModelConfig config = small_run();
  config.output_rate = 0.5F;
  config.input_rate = 0.25F;
  const RunPlan plan(config, {4, 8, 8});
  REQUIRE(plan.rates(3).output == 0.5F);
  REQUIRE(plan.rates(4).output == 0.25F);
  REQUIRE(plan.rates(7).input == 0.125F);
  REQUIRE(plan.rates(8).input == 0.03125F);
}

TEST_CASE("run plan: rows are hashed again on schedule and at every round's end", "[run_plan]") {
  ModelConfig config = small_run();
  config.rehash_batches = 3;
  const RunPlan plan(config);
  std::vector<BatchIndex> after;
  for (BatchIndex b = 0; b < 11; ++b) {
    if (plan.rehashes_after(b)) after.push_back(b);
  }
  REQUIRE(after == std::vector<BatchIndex>{2, 3, 5, 7, 8, 10});
}

}  // namespace gleaner
