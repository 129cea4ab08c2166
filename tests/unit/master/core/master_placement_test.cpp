// Who holds what: lending, moving, leaving.
#include <catch2/catch.hpp>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

CoreConfig placement_config() {
  CoreConfig settings = tiny_core_config();
  // The driver's volunteers seem the faster the more shards they hold.
  settings.unbalanced_rounds = 1'000'000;
  return settings;
}

bool is_ready(MasterDriver& master, SessionId id, std::uint32_t shards) {
  return master.core().leases().in_state(LeaseState::kReady).size() == 4 &&
         master.held_by(id) == shards;
}

// Serves `id` until it holds `shards` ready shards and the run still has most of its way to go.
void load(MasterDriver& master, SessionId id) {
  while (master.count<LeaseGrant>(id) > 0 || master.count<ShardChunk>(id) > 0 ||
         !master.storage.empty()) {
    if (!master.run_storage()) master.serve(id);
  }
}

}  // namespace

TEST_CASE("placement: nothing is lent before enough volunteers are here", "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  REQUIRE(master.held_by(ann) == 0);
  REQUIRE(master.worked.empty());
  const SessionId bob = master.join("bob");
  REQUIRE(master.held_by(ann) == 2);
  REQUIRE(master.held_by(bob) == 2);
  REQUIRE(master.worked == std::vector<std::string>{"F0", "F1"});
}

TEST_CASE("placement: shards are lent in proportion to the speeds volunteers state", "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId slow = master.join("slow", 1);
  const SessionId fast = master.join("fast", 3);
  REQUIRE(master.held_by(slow) == 1);
  REQUIRE(master.held_by(fast) == 3);
}

TEST_CASE("placement: a newcomer gets shards between two rounds, and nothing is trained twice",
          "[master]") {
  MasterDriver master(tiny_model(), placement_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  while (master.count<TrainUnit>(ann) == 0) REQUIRE(master.run_worker());
  master.serve(ann);  // its shards stand after batch 0 or 1 now
  const SessionId bob = master.join("bob");
  REQUIRE(master.count<ReleaseRequest>(ann) == 0);
  while (master.count<ReleaseRequest>(ann) == 0) {
    REQUIRE((master.serve(ann) || master.run_worker()));
  }
  REQUIRE(master.count<ReleaseRequest>(ann) == 2);
  for (std::uint32_t s = 0; s < 4; ++s) {
    REQUIRE(master.core().leases().at(ShardId{s}).next_batch == 3);
  }
  while (master.count<LeaseGrant>(bob) < 2) {
    REQUIRE((master.serve(ann) || master.run_worker() || master.run_storage()));
  }
  const auto grant = master.take<LeaseGrant>(bob);
  REQUIRE(grant.base_round == 1);
  REQUIRE(grant.base_chunks == 2);
  REQUIRE(grant.chunks == 3);
  REQUIRE(grant.next_batch == 3);
  for (Message& reply : master.volunteer(bob).replies_to(grant)) master.say(bob, reply);
  // The hand-over's part is at hand, the checkpoint's come from the store.
  const auto chunk = master.take<ShardChunk>(bob);
  REQUIRE(chunk.rows == tiny_rows(master.map(), grant.lease.shard));
  for (Message& reply : master.volunteer(bob).replies_to(chunk)) master.say(bob, reply);
  REQUIRE(is_ready(master, bob, 2) == false);  // the rest is still on its way
  master.settle();
  REQUIRE(master.held_by(ann) == 2);
  REQUIRE(master.held_by(bob) == 2);
  std::uint64_t examples = 0;
  for (const AccountRecord& account : master.core().accounts()) examples += account.examples;
  REQUIRE(examples == 2 * 10 * 4);  // epochs x points x shards
}

TEST_CASE("placement: where volunteers keep vanishing, newcomers wait for what those leave",
          "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  master.close(master.join("bob"));
  REQUIRE(master.held_by(ann) == 4);
  const SessionId cyd = master.join("cyd");
  // Loading takes as long as nobody has vanished for, and a move would halve a batch's time.
  master.tick(Millis(100));
  while (!master.done && master.core().checkpoint() < 2) {
    REQUIRE((master.run_worker() || master.run_storage() || master.serve(ann)));
  }
  REQUIRE(master.held_by(cyd) == 0);
  master.close(ann);
  REQUIRE(master.held_by(cyd) == 4);
}

TEST_CASE("placement: a hand-over that was not fetched whole serves the next holder", "[master]") {
  MasterDriver master(tiny_model(), placement_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  while (master.count<TrainUnit>(ann) == 0) REQUIRE(master.run_worker());
  master.serve(ann);
  const SessionId bob = master.join("bob");
  while (master.count<LeaseGrant>(bob) < 2) {
    REQUIRE((master.serve(ann) || master.run_worker() || master.run_storage()));
  }
  const auto first = master.take<LeaseGrant>(bob);
  master.close(bob);
  // The only one left takes it back where it stood.
  auto again = master.take<LeaseGrant>(ann);
  while (again.lease.shard != first.lease.shard) again = master.take<LeaseGrant>(ann);
  REQUIRE(raw(again.lease.epoch) > raw(first.lease.epoch));
  REQUIRE(again.next_batch == first.next_batch);
  REQUIRE(again.chunks == first.chunks);
  REQUIRE(again.chunks == again.base_chunks + 1);
}

TEST_CASE("placement: the shards of a vanished volunteer go to several others at once",
          "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 3;
  MasterDriver master(tiny_model(), settings);
  const SessionId big = master.join("big", 2);
  const SessionId ann = master.join("ann", 1);
  const SessionId bob = master.join("bob", 1);
  REQUIRE(master.held_by(big) == 2);
  master.close(big);
  REQUIRE(master.held_by(ann) == 2);
  REQUIRE(master.held_by(bob) == 2);
  const auto gone = master.notices<VolunteerLeft>().at(0);
  REQUIRE(gone.shards == 2);
  REQUIRE_FALSE(gone.polite);
}

TEST_CASE("placement: a replay is compared, not added again", "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  master.hold(bob);
  master.settle();  // ann has answered everything that is out
  master.close(ann);
  master.unhold(bob);
  bool has_replayed = false;
  while (!master.done) {
    if (master.count<TrainUnit>(bob) > 0) {
      const auto unit = master.take<TrainUnit>(bob);
      has_replayed = has_replayed || !unit.wants_gradient;
      for (Message& reply : master.volunteer(bob).replies_to(unit)) master.say(bob, reply);
    } else {
      REQUIRE((master.run_worker() || master.run_storage() || master.serve(bob)));
    }
  }
  REQUIRE(has_replayed);
  for (const auto& [batch, gradient] : master.gradients) {
    std::int32_t sum = 0;
    for (std::uint32_t s = 0; s < 4; ++s) sum += tiny_gradient(batch, ShardId{s});
    REQUIRE(gradient == std::vector<std::int32_t>(gradient.size(), sum));
  }
}

TEST_CASE("placement: a volunteer whose replay differs is a fault on its account", "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  master.hold(bob);
  master.settle();
  master.close(ann);
  // Sound so far, bob computes something else once it has to replay ann's shards.
  while (!master.is_closed(bob)) {
    if (master.run_worker() || master.run_storage()) continue;
    const auto task = master.take_task(bob);
    REQUIRE(task.has_value());
    const auto* unit = std::get_if<TrainUnit>(&*task);
    master.volunteer(bob).set_digest_offset(unit != nullptr && !unit->wants_gradient ? 1 : 0);
    for (Message& reply : master.volunteer(bob).replies_to(*task)) master.say(bob, reply);
  }
  REQUIRE(master.take<Refusal>(bob).code == ErrorCode::kFault);
  REQUIRE(master.notices<LogLine>().back().level == LogLevel::kError);
  std::uint64_t faults = 0;
  for (const AccountRecord& account : master.core().accounts()) faults += account.faults;
  REQUIRE(faults == 1);
  // Somebody sound finishes the run.
  master.join("cyd");
  master.settle();
  REQUIRE(master.done.has_value());
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("placement: a polite leave ends in Goodbye once every shard is handed over", "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  load(master, ann);
  load(master, bob);
  while (master.count<TrainUnit>(ann) == 0) REQUIRE(master.run_worker());
  master.say(ann, Leaving{"the owner is back"});
  REQUIRE(master.count<ReleaseRequest>(ann) == 2);
  REQUIRE_FALSE(master.is_closed(ann));
  REQUIRE(master.notices<LogLine>().back().kind == "leaving");
  // It answers what it has, then hands over; no new unit reaches it.
  while (!master.is_closed(ann)) REQUIRE(master.serve(ann));
  REQUIRE(master.take<Goodbye>(ann).code == ErrorCode::kShuttingDown);
  const auto gone = master.notices<VolunteerLeft>().at(0);
  REQUIRE(gone.polite);
  REQUIRE(gone.shards == 0);
  REQUIRE(master.held_by(bob) == 4);
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("placement: a leaver's half-loaded shards are revoked at once", "[master]") {
  MasterDriver master(tiny_model(), placement_config());
  const SessionId ann = master.join("ann");
  master.say(ann, Leaving{"never mind"});
  REQUIRE(master.count<Revoke>(ann) == 4);
  REQUIRE(master.count<Goodbye>(ann) == 1);
  REQUIRE(master.is_closed(ann));
}

TEST_CASE("placement: a leaver that breaks off did not leave politely", "[master]") {
  MasterDriver master(tiny_model(), placement_config());
  const SessionId ann = master.join("ann");
  load(master, ann);
  master.say(ann, Leaving{"going"});
  master.close(ann);
  const auto gone = master.notices<VolunteerLeft>().at(0);
  REQUIRE_FALSE(gone.polite);
  REQUIRE(gone.shards == 4);
}

TEST_CASE("placement: one whose link keeps all waiting gets no shards and is told why",
          "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  settings.unbalanced_rounds = 1;
  settings.silence = settings.stall = Millis(3'600'000);
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  REQUIRE(master.held_by(bob) == 2);
  // Bob's answers come when everybody waits for them, a second later, whatever its arithmetic took.
  master.hold(bob);
  const auto reason = [&] {
    std::string text;
    for (const LogLine& remark : master.notices<LogLine>()) {
      if (remark.kind == "no_shards") text = remark.message;
    }
    return text;
  };
  while (reason().empty()) {
    REQUIRE_FALSE(master.done);
    if (master.run_worker() || master.run_storage() || master.serve(ann)) continue;
    if (master.count<TrainUnit>(bob) > 0) {
      master.say(bob, Heartbeat{});
      master.tick(Millis(1'000));
    }
    master.unhold(bob);
    REQUIRE(master.serve(bob));
    master.hold(bob);
  }
  REQUIRE_THAT(reason(), Catch::Contains("bob gets no shards: its link keeps all waiting"));
  while (master.held_by(bob) > 0) {
    master.unhold(bob);
    REQUIRE(
        (master.run_worker() || master.run_storage() || master.serve(ann) || master.serve(bob)));
  }
  REQUIRE(master.held_by(ann) == 4);
  master.tick(settings.heartbeat);
  Heartbeat news = master.take<Heartbeat>(bob);
  while (master.count<Heartbeat>(bob) > 0) news = master.take<Heartbeat>(bob);
  REQUIRE_THAT(news.news->no_shards, Catch::Contains("its link keeps all waiting"));
}

TEST_CASE("placement: one too slow for a single shard gets none, and in time another chance",
          "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  settings.unbalanced_rounds = 1;
  settings.silence = settings.stall = Millis(3'600'000);
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  master.volunteer(bob).set_compute_us(1'000'000);
  const auto is_explained = [&] {
    const auto remarks = master.notices<LogLine>();
    return std::any_of(remarks.begin(), remarks.end(), [](const LogLine& remark) {
      return remark.kind == "no_shards" &&
             remark.message.find("bob gets no shards: others are done sooner") != std::string::npos;
    });
  };
  while (!is_explained()) {
    REQUIRE_FALSE(master.done);
    REQUIRE(
        (master.run_worker() || master.run_storage() || master.serve(ann) || master.serve(bob)));
  }
  REQUIRE(master.held_by(ann) == 4);
  const auto before = master.core().status().volunteers;
  master.tick(settings.forget_slowness);
  const auto after = master.core().status().volunteers;
  REQUIRE(after[0].speed == before[0].speed);
  REQUIRE(after[1].speed == 2 * before[1].speed);
}

TEST_CASE("placement: one that has missed heartbeats is lent nothing more", "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 3;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  const SessionId cyd = master.join("cyd", 2);
  REQUIRE(master.held_by(cyd) == 2);
  master.tick(settings.heartbeat * 3);
  master.say(bob, Heartbeat{});
  master.close(cyd);
  REQUIRE(master.held_by(ann) == 1);
  REQUIRE(master.held_by(bob) == 3);
}

TEST_CASE("placement: what is waited for is put into words", "[master]") {
  CoreConfig settings = placement_config();
  settings.shard_bytes = 100;
  MasterDriver master(tiny_model(), settings);
  REQUIRE_THAT(master.core().progress().waiting_for, Catch::Contains("none is connected"));
  const SessionId ann = master.open();
  Hello hello = master.hello("ann");
  hello.memory_bytes = 250;
  master.say(ann, hello);
  REQUIRE(master.held_by(ann) == 2);
  REQUIRE_THAT(master.core().progress().waiting_for, Catch::Contains("memory for 2 more shards"));
  const SessionId bob = master.join("bob");
  REQUIRE_THAT(master.core().progress().waiting_for, Catch::Contains("to load"));
  load(master, ann);
  load(master, bob);
  REQUIRE(is_ready(master, bob, 2));
  REQUIRE(master.core().progress().waiting_for.empty());
}

TEST_CASE("placement: a run that stands still names who owes the next step", "[master]") {
  CoreConfig settings = placement_config();
  settings.min_volunteers = 2;
  settings.silence = Millis(3'600'000);
  MasterDriver master(tiny_model(), settings);
  const auto waits_for = [&](const std::string& what) {
    master.tick(Millis(2'500));
    INFO(master.core().progress().waiting_for);
    return master.core().progress().waiting_for.find(what) != std::string::npos;
  };
  const SessionId ann = master.join("ann");
  const SessionId bob = master.join("bob");
  load(master, ann);
  load(master, bob);
  REQUIRE(waits_for("the master's own work on batch 0, for 2 s"));
  master.hold(bob);
  while (master.run_worker() || master.serve(ann)) {
  }
  REQUIRE(waits_for("the results of batch 0 from bob (2 shards)"));
  master.unhold(bob);
  while (master.run_worker() || master.serve(ann) || master.serve(bob)) {
  }
  REQUIRE(waits_for("the store to keep the commits of round 0"));
  while (!std::holds_alternative<FoldTask>(master.storage.front())) REQUIRE(master.run_storage());
  REQUIRE(waits_for("the store to fold round 0"));
  master.settle();
  REQUIRE(master.core().progress().waiting_for.empty());
}

}  // namespace gleaner
