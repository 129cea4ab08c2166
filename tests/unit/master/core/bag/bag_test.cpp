#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/master/core/bag/bag_run.hpp"
#include "tests/unit/master/core/tasks_done.hpp"

namespace gleaner {
namespace {

TEST_CASE("bag: one volunteer does every shard-round", "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  master.join("ann");
  finish(master);
  REQUIRE(master.core().checkpoint() == 4);
  REQUIRE(units_of(master, "ann") == 16);
  REQUIRE(std::ranges::count_if(master.stored, [](const std::string& task) {
            return task.starts_with("fold");
          }) == 4);
}

TEST_CASE("bag: a volunteer has in hand what its threads work on and one more", "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  REQUIRE(master.core().leases().count_held_by(ann) == 2);
  REQUIRE(shards_out(master, ann).size() == 2);
  REQUIRE(master.core().leases().in_state(LeaseState::kFree).size() == 2);
}

TEST_CASE("bag: whoever joins gets at once what nobody has begun", "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  const SessionId bob = master.join("bob");
  load(master, bob);
  REQUIRE(shards_out(master, bob).size() == 2);
  finish(master);
  REQUIRE(units_of(master, "bob") > 0);
}

// Every shard lies idle at the first volunteer, which has two of them in hand.
TEST_CASE("bag: whoever joins late takes idle shards from another", "[bag]") {
  ModelConfig model = wide_model();
  model.staleness = 4;
  MasterDriver master(model, wide_config());
  const SessionId ann = master.join("ann");
  // Its first round, and what is in hand of the next.
  while (master.core().checkpoint() == 0) do_one(master, ann);
  REQUIRE(master.core().leases().count_held_by(ann) == 4);
  const SessionId bob = master.join("bob");
  load(master, bob);
  REQUIRE(shards_out(master, bob).size() == 2);
  REQUIRE(shards_out(master, ann).size() == 2);
  finish(master);
}

TEST_CASE("bag: no shard is more rounds ahead than the staleness allows", "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  master.hold(ann);
  const SessionId bob = master.join("bob");
  master.settle();
  // Bob has done his shards in rounds 0 and 1, and waits.
  REQUIRE(master.core().checkpoint() == 0);
  REQUIRE(units_of(master, "bob") == 4);
  REQUIRE(shards_out(master, bob).empty());
  master.unhold(ann);
  finish(master);
}

TEST_CASE("bag: a volunteer that dies costs the shard-rounds that it had begun", "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  const SessionId ann = master.join("ann");
  for (int i = 0; i < 3; ++i) do_one(master, ann);
  load(master, ann);
  const std::uint64_t done = units_of(master, "ann");
  REQUIRE(done > 0);
  master.close(ann);
  master.join("bob");
  finish(master);
  REQUIRE(units_of(master, "bob") + done == 16);
}

TEST_CASE("bag: what is out for long is done by another as well, and the first answer counts",
          "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  master.hold(ann);
  const SessionId bob = master.join("bob");
  master.settle();
  for (int i = 0; i < 40 && !master.done; ++i) {
    master.tick(Millis(500));
    master.say(ann, Heartbeat{});
    master.say(bob, Heartbeat{});
    master.settle();
  }
  REQUIRE(master.outcome() == Outcome::kFinished);
  REQUIRE(units_of(master, "ann") == 0);
  REQUIRE(units_of(master, "bob") == 16);
}

TEST_CASE(
    "bag: the scores of a checkpoint come from whoever has the rows, and nobody waits for them",
    "[bag]") {
  MasterDriver master(wide_model(), wide_config(6));
  master.precisions = {0.25, 0.75};
  master.join("ann");
  master.join("bob");
  finish(master);
  REQUIRE(std::ranges::count(master.stored, "evaluation") == 2);
  // Scores of the first epoch are recorded before the next round is folded.
  const auto at = [&](const char* task) { return position(master.stored, task); };
  REQUIRE(at("fold 1") < at("evaluation"));
  REQUIRE(at("evaluation") < at("fold 2"));
  REQUIRE(master.core().progress().precision.at_1() == 0.75);
}

TEST_CASE("bag: a polite leave gives back what was not begun", "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  master.say(ann, Leaving{"stopped"});
  REQUIRE(master.count<ReleaseRequest>(ann) == 2);
  // Neither has been begun.
  for (int i = 0; i < 2; ++i) {
    const auto release = master.take<ReleaseRequest>(ann);
    master.say(ann, HandOver{release.lease, 0, 0, 0, 1, {}});
  }
  REQUIRE(master.count<Goodbye>(ann) == 1);
  REQUIRE(master.core().leases().in_state(LeaseState::kFree).size() == 4);
  master.join("bob");
  finish(master);
}

TEST_CASE("bag: shard-rounds that settled before a restart are not done again", "[bag]") {
  MasterDriver first(wide_model(), wide_config());
  const SessionId ann = first.join("ann");
  for (int i = 0; i < 3; ++i) do_one(first, ann);
  REQUIRE(first.core().checkpoint() == 0);
  REQUIRE(first.settled.size() >= 2);
  ResumePoint resume;
  resume.settled = first.settled;
  MasterDriver second(wide_model(), wide_config(), resume);
  second.join("bob");
  finish(second);
  REQUIRE(units_of(second, "bob") + first.settled.size() == 16);
}

TEST_CASE("bag: with little memory a volunteer does one shard after the other", "[bag]") {
  CoreConfig config = wide_config();
  config.shard_bytes = std::uint64_t{1} << 29;
  MasterDriver master(wide_model(), config);
  const SessionId ann = master.join("ann");
  REQUIRE(master.core().leases().count_held_by(ann) == 2);
  finish(master);
  REQUIRE(units_of(master, "ann") == 16);
}

TEST_CASE("bag: an answer that fits no unit ends the session", "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  const auto unit = master.take<TrainUnit>(ann);
  UnitResult result;
  result.unit = unit.unit;
  const ShardId other{raw(unit.leases.front().shard) ^ 1U};
  SECTION("of another shard") {
    result.batches = {{0, {{other, 1, 1, 1}}, {}}, {1, {{other, 1, 1, 1}}, {}}};
  }
  SECTION("of one batch") {
    result.batches = {{0, {{unit.leases.front().shard, 1, 1, 1}}, {}}};
  }
  SECTION("with a gradient") {
    const ShardId shard = unit.leases.front().shard;
    result.batches = {{0, {{shard, 1, 1, 1}}, {1}}, {1, {{shard, 1, 1, 1}}, {}}};
  }
  SECTION("of a unit that was never sent") {
    result.unit = UnitId{1000};
  }
  master.say(ann, result);
  REQUIRE(master.count<Refusal>(ann) == 1);
  master.join("bob");
  finish(master);
}

TEST_CASE("bag: an older volunteer is told which version it needs", "[bag]") {
  MasterDriver master(wide_model(), wide_config());
  const SessionId ann = master.open();
  Hello hello = master.hello("ann");
  hello.protocol_max = 18;
  master.say(ann, hello);
  REQUIRE(master.take<Refusal>(ann).code == ErrorCode::kVersion);
}

}  // namespace
}  // namespace gleaner
