// Hot standby: the auditor of a stranger that is gone goes on with its shards.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

CoreConfig all_audited(const ModelConfig& model) {
  CoreConfig config = tiny_core_config(model);
  config.audit = AuditMode::kAll;
  config.test_points = 8;
  return config;
}

std::size_t times_taken_over(const MasterDriver& master) {
  const std::vector<LogLine> lines = master.notices<LogLine>();
  return static_cast<std::size_t>(
      std::ranges::count_if(lines, [](const LogLine& line) { return line.kind == "took_over"; }));
}

// All move in turn until `who` has given `answers` answers. False when the run is over before.
bool run_until(MasterDriver& master, const std::vector<SessionId>& all, SessionId who,
               int answers) {
  while (answers > 0 && !master.outcome()) {
    bool moved = master.run_worker() || master.run_storage();
    for (const SessionId id : all) {
      const bool served = master.serve(id);
      moved = served || moved;
      if (served && id == who) --answers;
    }
    if (!moved) break;
  }
  return !master.outcome();
}

}  // namespace

TEST_CASE("standby: whenever a stranger vanishes, the run ends with the honest sums", "[master]") {
  const ModelConfig model = tiny_model();
  const auto honest = honest_gradients();
  std::size_t taken_over = 0;
  for (int answers = 0; answers < 40; ++answers) {
    INFO("after " << answers << " answers");
    MasterDriver master(model, all_audited(model));
    const std::vector<SessionId> all = {master.join_stranger("ann"), master.join_stranger("bob"),
                                        master.join_stranger("cid"), master.join_stranger("dan")};
    if (!run_until(master, all, all[0], answers)) break;
    master.close(all[0]);
    // The volunteer that goes on may vanish too.
    const bool goes_on = run_until(master, {all[1], all[2], all[3]}, all[1], 5);
    if (goes_on && answers % 2 == 0) master.close(all[1]);
    master.run_to_end();
    REQUIRE(master.outcome() == Outcome::kFinished);
    CHECK(master.notices<Conviction>().empty());
    CHECK(master.gradients == honest);
    taken_over += times_taken_over(master);
  }
  CHECK(taken_over > 5);
}

TEST_CASE("standby: whoever goes on keeps the lease that it audited under", "[master]") {
  const ModelConfig model = tiny_model();
  MasterDriver master(model, all_audited(model));
  const SessionId ann = master.join_stranger("ann");
  const SessionId bob = master.join("bob");  // trusted: it audits Ann
  while (master.core().shadows().held_by(bob).empty()) {
    REQUIRE(run_until(master, {ann, bob}, ann, 1));
  }
  // The shards that bob audits; the others are lent as usual.
  const std::vector<ShardId> shards = master.core().shadows().held_by(bob);
  const LeaseEpoch epoch = master.core().shadows().at(shards.front()).epoch;
  master.close(ann);
  // Nobody is lent them meanwhile.
  for (const ShardId shard : shards) {
    CHECK(master.core().leases().at(shard).state == LeaseState::kFree);
  }
  while (times_taken_over(master) == 0) REQUIRE(run_until(master, {bob}, bob, 1));
  for (const ShardId shard : shards) {
    const ShardLease& lease = master.core().leases().at(shard);
    CHECK(lease.state == LeaseState::kReady);
    CHECK(lease.holder == bob);
    CHECK(master.core().shadows().at(shard).state == LeaseState::kFree);
  }
  CHECK(master.core().leases().at(shards.front()).epoch == epoch);
  master.run_to_end();
  REQUIRE(master.outcome() == Outcome::kFinished);
  CHECK(master.gradients == honest_gradients());
}

TEST_CASE("standby: who lies after having taken over is convicted", "[master]") {
  const ModelConfig model = tiny_model();
  std::size_t told = 0;
  for (int answers = 2; answers < 20; ++answers) {
    MasterDriver master(model, all_audited(model));
    const std::vector<SessionId> all = {master.join_stranger("ann"), master.join_stranger("eve"),
                                        master.join_stranger("cid")};
    if (!run_until(master, all, all[0], answers)) break;
    master.close(all[0]);
    bool has_lied = false;
    master.corrupt(all[1], [&](Message& message) {
      auto* const result = std::get_if<UnitResult>(&message);
      if (result == nullptr || has_lied || times_taken_over(master) == 0) return;
      result->batches[0].shards[0].loss += 1;
      has_lied = true;
    });
    master.run_to_end();
    if (!has_lied) continue;
    ++told;
    const auto convicted = master.notices<Conviction>();
    REQUIRE(convicted.size() == 1);
    CHECK(convicted.front().who.name == "eve");
  }
  CHECK(told > 3);
}

TEST_CASE("standby: a polite leaver's auditor goes on too", "[master]") {
  const ModelConfig model = tiny_model();
  const auto honest = honest_gradients();
  std::size_t taken_over = 0;
  for (int answers = 1; answers < 20; ++answers) {
    MasterDriver master(model, all_audited(model));
    const std::vector<SessionId> all = {master.join_stranger("ann"), master.join_stranger("bob"),
                                        master.join_stranger("cid")};
    if (!run_until(master, all, all[0], answers)) break;
    master.say(all[0], Leaving{"asked to"});
    master.run_to_end();
    CHECK(master.is_closed(all[0]));
    REQUIRE(master.outcome() == Outcome::kFinished);
    CHECK(master.gradients == honest);
    taken_over += times_taken_over(master);
  }
  CHECK(taken_over > 3);
}

}  // namespace gleaner
