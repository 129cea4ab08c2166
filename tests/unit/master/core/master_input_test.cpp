// Runs whose input layer volunteers hold. Those that lie about it are in
// master_input_refusals_test.
#include <catch2/catch.hpp>

#include "common/work/input_parts.hpp"
#include "tests/support/master_driver.hpp"
#include "tests/unit/master/core/lent_input.hpp"

namespace gleaner {

TEST_CASE("lent input: a run is trained to the end by one volunteer as by two", "[master]") {
  for (const std::uint32_t count : {1u, 2u}) {
    CoreConfig settings = lent_input_config(count);
    settings.test_points = 6;
    MasterDriver master(lent_input_model(), settings);
    std::vector<SessionId> volunteers;
    for (std::uint32_t i = 0; i < count; ++i) {
      volunteers.push_back(master.join("v" + std::to_string(i)));
    }
    master.settle();
    require_trained(master);
    require_updated(master, volunteers);
    std::string encoded;
    for (const std::string& task : master.worked) {
      // Neither a pass nor a commit of the input layer is the master's.
      REQUIRE(std::string("FCE").find(task[0]) == std::string::npos);
      if (task[0] == 'f' || task[0] == 'e' || task[0] == 'B') encoded += task + ' ';
    }
    REQUIRE_THAT(encoded, Catch::StartsWith("f0 f1 B0 "));
    REQUIRE_THAT(encoded, Catch::Contains("B4 e0 e4 f5 f6 B5"));
    REQUIRE_THAT(encoded, Catch::EndsWith("B9 e0 e4 "));
    for (const char* stage : {"stage 0/4.0", "stage 0/5.0", "stage 3/4.0", "stage 3/5.0"}) {
      REQUIRE(std::count(master.stored.begin(), master.stored.end(), stage) == 1);
    }
    std::uint64_t units = 0;
    for (const AccountRecord& account : master.core().accounts()) {
      REQUIRE(account.units_issued == account.units);
      units += account.units;
    }
    REQUIRE(units > 0);
  }
}

TEST_CASE("lent input: input shards are shared out, without label counts", "[master]") {
  MasterDriver master(lent_input_model(), lent_input_config(2));
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  REQUIRE(input_shard_of(master, ann) == kFour);
  REQUIRE(input_shard_of(master, bob) == kFive);
  REQUIRE(master.held_by(ann) == 3);
  const LeaseGrant grant = take_input_grant(master, ann);
  REQUIRE(grant.label_counts.empty());
  REQUIRE(grant.base_round == 0);
  REQUIRE(grant.next_batch == 0);
  REQUIRE(grant.chunks == 0);  // every row follows from the configuration
}

TEST_CASE("lent input: a restarted master goes on from the checkpoint", "[master]") {
  MasterDriver master(lent_input_model(), lent_input_config(2), {1, false, LeaseEpoch{50}});
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  for (const SessionId id : {ann, bob}) {
    const LeaseGrant grant = take_input_grant(master, id);
    REQUIRE(grant.base_round == 1);
    REQUIRE(grant.next_batch == 3);
    // 8 features and the bias; a row of 16 weights is half as wide as an output row.
    REQUIRE(grant.base_chunks == 3);
    REQUIRE(grant.chunks == 3);
    answer(master, id, grant);
  }
  REQUIRE(master.worked.empty());
  master.settle();
  require_trained(master, 3);
}

TEST_CASE("lent input: a vanished holder's shard is replayed by another, known steps left out",
          "[master]") {
  MasterDriver master(lent_input_model(), lent_input_config(2));
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  const ShardId lost = input_shard_of(master, ann);
  while (!master.volunteer(ann).input_gradients().contains({1, lost})) {
    REQUIRE((master.run_worker() || master.serve(ann) || master.serve(bob)));
  }
  REQUIRE(master.activations.contains(1));
  master.close(ann);
  const LeaseGrant grant = take_input_grant(master, bob);
  REQUIRE(grant.lease.shard == lost);
  REQUIRE(grant.next_batch == 0);
  REQUIRE(grant.chunks == 0);
  answer(master, bob, grant);
  auto unit = master.take<InputUnit>(bob);
  while (unit.leases.front() != grant.lease) {
    answer(master, bob, unit);
    unit = master.take<InputUnit>(bob);
  }
  REQUIRE(unit.leases.size() == 1);
  REQUIRE(unit.steps.size() >= 2);
  for (BatchIndex batch = 0; batch < 2; ++batch) {
    REQUIRE(unit.steps[batch].kind == InputStep::Kind::kBackward);
    REQUIRE(unit.steps[batch].index == batch);
  }
  answer(master, bob, unit);
  master.settle();
  require_trained(master);
  require_updated(master, {bob});
}

TEST_CASE("lent input: all the holders may vanish, and nothing waits for ever", "[master]") {
  MasterDriver master(lent_input_model(), lent_input_config(2));
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  while (master.core().checkpoint() < 1) {
    REQUIRE(
        (master.run_worker() || master.run_storage() || master.serve(ann) || master.serve(bob)));
  }
  master.close(ann);
  master.close(bob);
  const SessionId cyd = master.join("cyd");
  REQUIRE(master.held_by(cyd) == 6);
  master.settle();
  require_trained(master);
}

TEST_CASE("lent input: a leaver answers what it has, asks for points, and hands over", "[master]") {
  MasterDriver master(lent_input_model(), lent_input_config(2));
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  const ShardId given = input_shard_of(master, ann);
  // Ann sits on the unit that has the update of batch 0.
  std::optional<InputUnit> unit;
  while (!unit) {
    if (master.run_worker() || master.serve(bob)) continue;
    const auto task = master.take_task(ann);
    REQUIRE(task.has_value());
    const auto* input = std::get_if<InputUnit>(&*task);
    if (input != nullptr && input->steps.front().kind == InputStep::Kind::kBackward) {
      unit = *input;
      break;
    }
    answer(master, ann, *task);
  }
  master.say(ann, Leaving{"the owner is back"});
  REQUIRE(master.core().leases().at(given).state == LeaseState::kReleasing);
  const BatchIndex stands_before = master.core().leases().at(given).next_batch;
  REQUIRE(stands_before > 0);
  // The unit waits for points.
  master.say(ann, PointsRequest{PointSet::kTraining, {0, 1}});
  REQUIRE(master.run_worker());
  REQUIRE(master.take<Points>(ann).points.size() == 2);
  answer(master, ann, *unit);
  while (!master.is_closed(ann)) REQUIRE(master.serve(ann));
  REQUIRE(master.take<Goodbye>(ann).code == ErrorCode::kShuttingDown);
  REQUIRE(master.notices<VolunteerLeft>().at(0).polite);
  const LeaseGrant grant = take_input_grant(master, bob);
  REQUIRE(grant.lease.shard == given);
  REQUIRE(grant.next_batch == stands_before);
  REQUIRE(grant.chunks == grant.base_chunks + 1);
  answer(master, bob, grant);
  master.settle();
  require_trained(master);
  require_updated(master, {ann, bob});
}

TEST_CASE("lent input: a newcomer gets an input shard between two rounds", "[master]") {
  MasterDriver master(lent_input_model(), lent_input_config(1));
  const SessionId ann = master.join("ann");
  while (!master.volunteer(ann).input_gradients().contains({0, kFour})) {
    REQUIRE((master.run_worker() || master.serve(ann)));
  }
  const SessionId bob = master.join("bob");
  while (master.count<LeaseGrant>(bob) < 3) {
    REQUIRE(master.held_by(ann) >= 3);
    REQUIRE((master.run_worker() || master.run_storage() || master.serve(ann)));
  }
  const LeaseGrant grant = take_input_grant(master, bob);
  REQUIRE(grant.base_round > 0);
  REQUIRE(grant.next_batch == master.plan().round_begin(grant.base_round));
  answer(master, bob, grant);
  master.settle();
  require_trained(master);
  require_updated(master, {ann, bob});
  REQUIRE_FALSE(master.volunteer(bob).input_gradients().empty());
}

TEST_CASE("lent input: who has no memory for an input shard gets none, and the run says so",
          "[master]") {
  CoreConfig settings = lent_input_config(1);
  settings.shard_bytes = 100;
  settings.input_shard_bytes = 300;
  MasterDriver master(lent_input_model(), settings);
  const auto join_with = [&](const std::string& name, std::uint64_t memory) {
    const SessionId id = master.open();
    Hello hello = master.hello(name);
    hello.memory_bytes = memory;
    master.say(id, std::move(hello));
    return id;
  };
  // For all output shards, and as much again but one byte.
  const SessionId ann = join_with("ann", 699);
  REQUIRE(master.held_by(ann) == 4);
  REQUIRE_THAT(master.core().progress().waiting_for, Catch::Contains("memory for 2 more shards"));
  master.settle();
  REQUIRE(master.worked.empty());
  const SessionId bob = join_with("bob", 300);
  REQUIRE(input_shard_of(master, bob) == kFour);
  REQUIRE(master.held_by(bob) == 1);
  master.settle();
  REQUIRE_THAT(master.core().progress().waiting_for, Catch::Contains("memory for 1 more shard"));
  const SessionId cyd = join_with("cyd", 350);
  REQUIRE(input_shard_of(master, cyd) == kFive);
  master.settle();
  require_trained(master);
}

TEST_CASE("lent input: who holds input shards alone is not told that it has none", "[master]") {
  CoreConfig settings = lent_input_config(2);
  settings.shard_bytes = 100;
  settings.input_shard_bytes = 200;
  MasterDriver master(lent_input_model(), settings);
  const SessionId ann = master.open();
  Hello hello = master.hello("ann");
  hello.memory_bytes = 400;
  master.say(ann, hello);
  const SessionId bob = master.open();
  hello = master.hello("bob");
  hello.memory_bytes = 400;
  hello.speed = 1e-6F;
  master.say(bob, hello);
  REQUIRE(master.held_by(ann) == 4);
  REQUIRE(master.core().leases().held_by(bob) == std::vector<ShardId>{kFour, kFive});
  master.settle();
  require_trained(master);
  for (const LogLine& remark : master.notices<LogLine>()) REQUIRE(remark.kind != "no_shards");
}

TEST_CASE("lent input: one too slow for an output shard gets another chance all the same",
          "[master]") {
  CoreConfig settings = lent_input_config(2);
  settings.unbalanced_rounds = 1;
  settings.silence = settings.stall = Millis(3'600'000);
  MasterDriver master(lent_input_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  master.volunteer(bob).set_compute_us(1'000'000);
  while (master.held_by(bob) > 1) {
    REQUIRE_FALSE(master.done);
    REQUIRE(
        (master.run_worker() || master.run_storage() || master.serve(ann) || master.serve(bob)));
  }
  REQUIRE(input_shard_of(master, bob) == kFive);
  const double before = master.core().status().volunteers[1].speed;
  master.tick(settings.forget_slowness);
  REQUIRE(master.core().status().volunteers[1].speed == 2 * before);
}

TEST_CASE("lent input: a slow link keeps the shards that nobody else has the memory for",
          "[master]") {
  CoreConfig settings = lent_input_config(2);
  settings.unbalanced_rounds = 1;
  settings.silence = settings.stall = Millis(3'600'000);
  settings.shard_bytes = 100;
  settings.input_shard_bytes = 1000;
  MasterDriver master(lent_input_model(), settings);
  const SessionId ann = master.open();
  Hello hello = master.hello("ann");
  hello.memory_bytes = 400;
  master.say(ann, hello);
  const SessionId bob = master.join("bob");
  REQUIRE(master.held_by(bob) == 4);
  while (!master.done) {
    master.hold(bob);
    if (master.run_worker() || master.run_storage() || master.serve(ann)) continue;
    if (master.count<TrainUnit>(bob) > 0) {
      master.say(ann, Heartbeat{});
      master.say(bob, Heartbeat{});
      master.tick(Millis(1'000));
    }
    master.unhold(bob);
    REQUIRE(master.serve(bob));
  }
  for (const LogLine& remark : master.notices<LogLine>()) REQUIRE(remark.kind != "no_shards");
  require_trained(master);
}

TEST_CASE("lent input: a run that stands still names who owes hidden units", "[master]") {
  CoreConfig settings = lent_input_config(2);
  settings.silence = Millis(3'600'000);
  MasterDriver master(lent_input_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  while (master.core().leases().in_state(LeaseState::kReady).size() < 6) {
    REQUIRE((master.serve(ann) || master.serve(bob)));
  }
  settle_without(master, bob);
  master.tick(Millis(2'500));
  REQUIRE_THAT(master.core().progress().waiting_for,
               Catch::Contains("the hidden units of batch 0 from bob (1 shard)"));
  master.unhold(bob);
  master.settle();
  require_trained(master);
}

TEST_CASE("lent input: a holder that owes hidden units for too long is let go", "[master]") {
  CoreConfig settings = lent_input_config(2);
  settings.silence = Millis(3'600'000);
  MasterDriver master(lent_input_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  while (master.count<InputUnit>(bob) == 0) REQUIRE(master.serve(bob));
  settle_without(master, bob);
  // Points are no progress: it could ask for them for ever.
  master.tick(settings.stall - Millis(1));
  master.say(bob, PointsRequest{PointSet::kTraining, {0}});
  REQUIRE_FALSE(master.is_closed(bob));
  master.tick(Millis(1));
  REQUIRE(master.is_closed(bob));
  master.say(ann, Heartbeat{});
  master.settle();
  require_trained(master);
}

}  // namespace gleaner
