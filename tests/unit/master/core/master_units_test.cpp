// How large units are: one batch where a volunteer would wait, more where the lag allows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

// One round of 60 batches.
ModelConfig long_model(std::uint32_t staleness) {
  ModelConfig model = tiny_model();
  model.points = 120;
  model.epochs = 1;
  model.round_batches = 60;
  model.staleness = staleness;
  return model;
}

// Trains to the end with one volunteer, which does one unit after the other and takes `batch_time`
// for a batch. Returns the batches of the units of all shards, in order.
std::vector<std::uint32_t> unit_sizes(std::uint32_t staleness, Micros batch_time,
                                      Micros round_trip) {
  const ModelConfig model = long_model(staleness);
  CoreConfig config = tiny_core_config(model);
  config.batches_per_unit_max = 16;
  MasterDriver master(model, config);
  const SessionId ann = master.join("ann");
  const auto sent = static_cast<std::uint64_t>(master.now().time_since_epoch().count());
  master.tick(round_trip);
  master.say(ann, Heartbeat{1, sent, {}});
  REQUIRE(master.core().status().volunteers.at(0).round_trip_us == round_trip.count());
  std::vector<std::uint32_t> sizes;
  std::uint32_t trained = 0;  // batches x shards
  while (true) {
    while (master.run_worker() || master.run_storage()) {
    }
    const std::optional<Message> task = master.take_task(ann);
    if (!task) break;
    if (const auto* unit = std::get_if<TrainUnit>(&*task)) {
      const auto batches = static_cast<std::uint32_t>(unit->batches.size());
      const auto shards = static_cast<std::uint32_t>(unit->leases.size());
      trained += batches * shards;
      if (shards == model.output_shards) sizes.push_back(batches);
      const Micros taken = batch_time * batches * shards / model.output_shards;
      master.volunteer(ann).set_compute_us(static_cast<std::uint64_t>(taken.count()));
      master.tick(taken);
    }
    for (Message& reply : master.volunteer(ann).replies_to(*task)) {
      master.say(ann, std::move(reply));
    }
  }
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE(trained == 60 * model.output_shards);
  // They begin one after the other, and soon share units.
  REQUIRE(std::accumulate(sizes.begin(), sizes.end(), 0u) >= 30);
  return sizes;
}

std::uint32_t largest(const std::vector<std::uint32_t>& sizes) {
  return *std::max_element(sizes.begin(), sizes.end());
}

}  // namespace

TEST_CASE("units: they grow to a quarter of the lag while what is in hand lasts", "[master]") {
  const std::vector<std::uint32_t> sizes = unit_sizes(16, Millis(10), Millis(0));
  REQUIRE(largest(sizes) == 4);
  REQUIRE(std::count(sizes.begin(), sizes.end(), 4) >= 6);
}

TEST_CASE("units: of one batch where the volunteer would wait for a larger one", "[master]") {
  REQUIRE(largest(unit_sizes(0, Millis(10), Millis(0))) == 1);
  REQUIRE(largest(unit_sizes(1, Millis(10), Millis(0))) == 1);
  // 17 batches last 170 ms, of which the next result and the next unit take a round trip, and are
  // given two.
  REQUIRE(largest(unit_sizes(16, Millis(10), Millis(80))) == 1);
  REQUIRE(largest(unit_sizes(16, Millis(10), Millis(70))) == 2);
  REQUIRE(largest(unit_sizes(16, Millis(10), Millis(50))) == 4);
}

TEST_CASE("units: of no more than their time", "[master]") {
  const ModelConfig model = long_model(16);
  REQUIRE(tiny_core_config(model).unit_target == Millis(200));
  REQUIRE(largest(unit_sizes(16, Millis(90), Millis(0))) == 2);
  REQUIRE(largest(unit_sizes(16, Millis(300), Millis(0))) == 1);
}

}  // namespace gleaner
