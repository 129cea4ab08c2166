// Runs with everything drawn from a seed; see fault_plan.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <string>

#include "tests/sim/small_world.hpp"

namespace gleaner::sim {
namespace {

std::map<std::string, std::uint64_t> weather(SmallWorld& world, std::uint64_t seed) {
  const ClusterResult result = world.run(world.storm(seed));
  INFO("replay it with: gleaner-simulate --seed " << seed << " --trace");
  for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  REQUIRE(result.finished);
  return result.happened;
}

}  // namespace

TEST_CASE("storm: no storm of faults changes a bit of any checkpoint", "[sim]") {
  const auto [first, count] = seeds_to_run(200);
  SmallWorld world;
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    for (const auto& [mark, times] : weather(world, seed)) reached[mark] += times;
  }
  // A storm that never reaches the rare paths proves little.
  if (count < 200) return;
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    INFO("fault " << name_of(static_cast<Fault>(i)));
    REQUIRE(reached[std::string("fault.") + name_of(static_cast<Fault>(i))] > 0);
  }
  for (const char* mark : {"branch.chunk_read_for_nobody",
                           "branch.died_after_a_fold",
                           "branch.died_before_a_fold",
                           "branch.overtook_a_fold",
                           "branch.died_after_folded",
                           "branch.died_in_recovery",
                           "branch.input_replay",
                           "branch.input_unit_of_several_shards",
                           "branch.input_unit_of_several_steps",
                           "branch.loads_a_checkpoint",
                           "branch.loads_a_hand_over",
                           "branch.message_of_a_dropped_session",
                           "branch.not_listening",
                           "branch.no_room_at_a_start",
                           "branch.fold_resumed",
                           "branch.nonsense_received",
                           "branch.power_failed_at_a_write",
                           "branch.read_failed",
                           "branch.reads_staged_commits",
                           "branch.replay_of_known_batches",
                           "branch.resumed_from_checkpoint",
                           "branch.resumed_unevaluated",
                           "branch.revoked_while_loading",
                           "branch.unit_of_several_batches",
                           "branch.unsynced_writes_lost",
                           "branch.work_failed_for_memory",
                           "branch.work_waits_for_the_link",
                           "branch.write_deadline",
                           "branch.write_failed",
                           "done.abandoned",
                           "done.stopped",
                           "exit.success",
                           "network.cut_inside_packet",
                           "network.held_back",
                           "notice.left",
                           "log.leaving",
                           "notice.paused",
                           "notice.resumed",
                           "log.moving",
                           "log.rejoined",
                           "log.stopping",
                           "log.turned_away"}) {
    INFO(mark);
    REQUIRE(reached[mark] > 0);
  }
}

TEST_CASE("storm: seeds that once failed do not fail again", "[sim]") {
  SmallWorld world;
  std::ifstream seeds(GLEANER_REGRESSION_SEEDS);
  REQUIRE(seeds.is_open());
  std::string line;
  while (std::getline(seeds, line)) {
    if (line.empty() || line.front() == '#') continue;
    weather(world, std::strtoull(line.c_str(), nullptr, 10));
  }
}

}  // namespace gleaner::sim
