// Who may take part, and who is let go.
#include <catch2/catch.hpp>

#include "schema/versions.hpp"
#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

// Opens a session, says `hello` and returns the answer.
Refusal refused(MasterDriver& master, const Hello& hello) {
  const SessionId id = master.open();
  master.say(id, hello);
  REQUIRE(master.is_closed(id));
  REQUIRE(master.count<Welcome>(id) == 0);
  return master.take<Refusal>(id);
}

}  // namespace

TEST_CASE("admission: an acceptable Hello is welcomed with the whole model", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.heartbeat = Millis(1234);
  settings.silence = Millis(5678);
  MasterDriver master(tiny_model(), settings);
  const SessionId id = master.join("ann");
  const auto welcome = master.take<Welcome>(id);
  REQUIRE(welcome.protocol == kProtocolMax);
  REQUIRE(welcome.model == tiny_model());
  REQUIRE(welcome.heartbeat_ms == 1234);
  REQUIRE(welcome.silence_ms == 5678);
  const auto came = master.notices<VolunteerJoined>();
  REQUIRE(came.size() == 1);
  REQUIRE(came[0].name == "ann");
  REQUIRE(came[0].volunteers == 1);
}

TEST_CASE("admission: protocol ranges that do not meet are refused, naming what to update",
          "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  Hello hello = master.hello("new");
  hello.protocol_min = kProtocolMax + 1;
  hello.protocol_max = kProtocolMax + 3;
  const Refusal newer = refused(master, hello);
  REQUIRE(newer.code == ErrorCode::kVersion);
  REQUIRE_FALSE(newer.retry);
  REQUIRE_THAT(newer.sentence, Catch::EndsWith("update the master"));
  hello.protocol_min = hello.protocol_max = kProtocolMin - 1;
  REQUIRE_THAT(refused(master, hello).sentence, Catch::EndsWith("update the volunteer"));
}

TEST_CASE("admission: the best protocol both speak is chosen", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId id = master.open();
  Hello hello = master.hello("ann");
  hello.protocol_max = kProtocolMax + 5;
  master.say(id, hello);
  REQUIRE(master.take<Welcome>(id).protocol == kProtocolMax);
}

TEST_CASE("admission: a volunteer without memory for one shard is refused with both figures",
          "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.shard_bytes = std::uint64_t{60} << 20;
  settings.holder_bytes = std::uint64_t{4} << 20;
  MasterDriver master(tiny_model(), settings);
  Hello hello = master.hello("small");
  hello.memory_bytes = (std::uint64_t{64} << 20) - 1;
  const Refusal refusal = refused(master, hello);
  REQUIRE(refusal.code == ErrorCode::kResources);
  REQUIRE_THAT(refusal.sentence, Catch::Contains("64 MiB") && Catch::Contains("63 MiB"));
  hello.memory_bytes = 2 * settings.shard_bytes;  // not for two shards and what their holder needs
  const SessionId id = master.open();
  master.say(id, hello);
  REQUIRE(master.count<Welcome>(id) == 1);
  REQUIRE(master.held_by(id) == 1);  // and gets no more than fits
}

TEST_CASE("admission: a volunteer whose kernels give other bits is refused, naming the first",
          "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.kernels = {{"dot", 1}, {"axpy", 2}, {"logistic", 3}};
  MasterDriver master(tiny_model(), settings);
  Hello hello = master.hello("liar");
  hello.kernels = {{"dot", 1}, {"axpy", 0xabc}, {"logistic", 4}};
  const Refusal refusal = refused(master, hello);
  REQUIRE(refusal.code == ErrorCode::kFault);
  REQUIRE_FALSE(refusal.retry);
  REQUIRE_THAT(refusal.sentence, Catch::StartsWith("the kernel axpy gives 0000000000000abc on the "
                                                   "volunteer (version test, scalar) and "
                                                   "0000000000000002 on the master") &&
                                     Catch::Contains("gleaner-volunteer --self-test"));
}

TEST_CASE("admission: the same bits are welcome, and so are older volunteers, which tell none",
          "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.kernels = {{"dot", 1}, {"axpy", 2}};
  MasterDriver master(tiny_model(), settings);
  Hello hello = master.hello("ann");
  for (const std::vector<KernelDigest>& kernels :
       {settings.kernels, std::vector<KernelDigest>{},
        std::vector<KernelDigest>{{"axpy", 2}, {"of_a_later_version", 7}}}) {
    hello.kernels = kernels;
    const SessionId id = master.open();
    master.say(id, hello);
    REQUIRE(master.count<Welcome>(id) == 1);
  }
}

TEST_CASE("admission: anything before Hello is refused by name", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId id = master.open();
  master.say(id, Heartbeat{});
  const auto refusal = master.take<Refusal>(id);
  REQUIRE(refusal.code == ErrorCode::kProtocol);
  REQUIRE_THAT(refusal.sentence, Catch::StartsWith("Heartbeat before Hello"));
  REQUIRE(master.is_closed(id));
  REQUIRE(master.notices<VolunteerLeft>().empty());
  REQUIRE(master.notices<LogLine>().at(0).kind == "turned_away");
}

TEST_CASE("admission: a second Hello ends the session and frees its shards", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId id = master.join("ann");
  REQUIRE(master.held_by(id) == 4);
  master.say(id, master.hello("ann"));
  REQUIRE(master.take<Refusal>(id).code == ErrorCode::kProtocol);
  REQUIRE(master.is_closed(id));
  REQUIRE(master.core().leases().in_state(LeaseState::kFree).size() == 4);
}

TEST_CASE("admission: messages for volunteers are refused from volunteers", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  for (const Message& message :
       {Message(Welcome{}), Message(TrainUnit{}), Message(CommitCredit{}), Message(Revoke{})}) {
    const SessionId id = master.join("ann");
    master.say(id, message);
    REQUIRE_THAT(master.take<Refusal>(id).sentence, Catch::Contains("is never sent this way"));
    REQUIRE(master.is_closed(id));
  }
}

TEST_CASE("admission: the same identity connecting again closes its old session", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId old = master.join("ann");
  const Hello again = master.hello("ann");
  const SessionId other = master.join("bob");
  const SessionId renewed = master.open_again(old);
  master.say(renewed, again);
  const auto refusal = master.take<Refusal>(old);
  REQUIRE(refusal.code == ErrorCode::kIdentity);
  // It may be the older of two connections of one volunteer that came in the wrong order.
  REQUIRE(refusal.retry);
  REQUIRE(master.is_closed(old));
  REQUIRE_FALSE(master.is_closed(other));
  REQUIRE(master.held_by(old) == 0);
  REQUIRE(master.held_by(renewed) + master.held_by(other) == 4);
  REQUIRE(master.notices<VolunteerLeft>().at(0).reason == "it connected again");
  // Messages that the old connection still brings are nobody's.
  master.say(old, Heartbeat{});
  master.close(old);
  REQUIRE(master.notices<VolunteerLeft>().size() == 1);
}

TEST_CASE("admission: of two processes with one key the one that started last stays", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId old = master.join("ann");
  Hello copy = master.hello("ann");
  copy.process = 1;
  const SessionId other = master.open_again(old);
  master.say(other, copy);
  const auto refusal = master.take<Refusal>(old);
  REQUIRE(refusal.code == ErrorCode::kIdentity);
  REQUIRE_FALSE(refusal.retry);  // it would take the other's place, and so on for ever
  REQUIRE(master.is_closed(old));
  REQUIRE(master.held_by(other) == 4);
  // The first connection's message arrives late.
  const SessionId late = master.open_again(old);
  master.say(late, master.hello("ann"));
  REQUIRE(master.is_closed(late));
  REQUIRE(master.take<Refusal>(late).retry);
  REQUIRE_FALSE(master.is_closed(other));
}

TEST_CASE("admission: a connection that does not introduce itself is closed in time", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId id = master.open();
  const Millis deadline = tiny_core_config().join_timeout;
  master.tick(deadline - Micros(1));
  REQUIRE_FALSE(master.is_closed(id));
  master.tick(Micros(1));
  REQUIRE(master.is_closed(id));
  REQUIRE(master.take<Refusal>(id).retry);
}

TEST_CASE("admission: a silent volunteer is taken for dead, one that is heard is not", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId silent = master.join("silent");
  const SessionId alive = master.join("alive");
  const Millis silence = tiny_core_config().silence;
  master.tick(silence - Micros(1));
  master.say(alive, Heartbeat{});
  REQUIRE_FALSE(master.is_closed(silent));
  master.tick(Micros(1));
  REQUIRE(master.is_closed(silent));
  REQUIRE_FALSE(master.is_closed(alive));
  REQUIRE(master.take<Refusal>(silent).retry);
  REQUIRE(master.held_by(alive) == 4);
}

TEST_CASE("admission: a volunteer that owes results for too long is let go", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId id = master.join("ann");
  master.settle_without_storage();
  master.hold(id);
  while (master.run_storage() || master.run_worker()) {
  }
  REQUIRE(master.count<TrainUnit>(id) > 0);
  const Millis stall = tiny_core_config().stall;
  for (Millis waited{0}; waited < stall; waited += Millis(5'000)) {
    REQUIRE_FALSE(master.is_closed(id));
    master.say(id, Heartbeat{});  // alive, but not working
    master.tick(Millis(5'000));
  }
  REQUIRE(master.is_closed(id));
  REQUIRE_THAT(master.take<Refusal>(id).sentence,
               Catch::Contains("did not answer a unit within 120 s"));
}

TEST_CASE("admission: a volunteer that never finishes loading is let go", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId id = master.join("ann");
  REQUIRE(master.count<LeaseGrant>(id) == 4);
  for (int i = 0; i < 24; ++i) {
    REQUIRE_FALSE(master.is_closed(id));
    master.say(id, Heartbeat{});
    master.tick(Millis(5'000));
  }
  REQUIRE(master.is_closed(id));
}

TEST_CASE("admission: a volunteer that answers but never commits is let go", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId id = master.join("ann");
  // Everything but its commits arrives.
  while (true) {
    if (master.run_worker() || master.run_storage()) continue;
    if (master.count<LeaseGrant>(id) > 0) {
      const auto grant = master.take<LeaseGrant>(id);
      for (Message& reply : master.volunteer(id).replies_to(grant)) master.say(id, reply);
    } else if (master.count<TrainUnit>(id) > 0) {
      const auto unit = master.take<TrainUnit>(id);
      master.say(id, master.volunteer(id).replies_to(unit).at(0));
    } else {
      break;
    }
  }
  REQUIRE(master.core().checkpoint() == 0);
  for (int i = 0; i < 24; ++i) {
    REQUIRE_FALSE(master.is_closed(id));
    master.say(id, Heartbeat{});
    master.tick(Millis(5'000));
  }
  REQUIRE(master.is_closed(id));
}

TEST_CASE("admission: a volunteer that waits for others is not blamed for it", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId diligent = master.join("diligent");
  const SessionId stuck = master.join("stuck");
  master.hold(stuck);
  master.settle();
  REQUIRE(master.held_by(diligent) == 2);
  for (int i = 0; i < 24; ++i) {
    master.say(diligent, Heartbeat{});
    master.say(stuck, Heartbeat{});
    master.tick(Millis(5'000));
  }
  REQUIRE(master.is_closed(stuck));
  REQUIRE_FALSE(master.is_closed(diligent));
  // It takes over the other's shards, and does not inherit its debts.
  master.say(diligent, Heartbeat{});
  master.tick();
  REQUIRE(master.held_by(diligent) == 4);
  REQUIRE_FALSE(master.is_closed(diligent));
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
}

TEST_CASE("admission: heartbeats carry news and measure the round trip", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.min_volunteers = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId id = master.join("ann");
  master.tick(settings.heartbeat);
  const auto heartbeat = master.take<Heartbeat>(id);
  REQUIRE(heartbeat.news->volunteers == 1);
  REQUIRE(heartbeat.news->rounds == 4);
  REQUIRE_THAT(heartbeat.news->waiting_for, Catch::Contains("1 of the 2"));
  master.tick(Millis(30));
  master.say(id, Heartbeat{77, heartbeat.echo_us, {}});
  REQUIRE(master.core().status().volunteers.at(0).round_trip_us == 30'000);
  master.tick(settings.heartbeat);
  REQUIRE(master.take<Heartbeat>(id).echoed_us == 77);
  // An echo from the future measures nothing.
  master.say(id, Heartbeat{78, heartbeat.echo_us + 3'600'000'000, {}});
  REQUIRE(master.core().status().volunteers.at(0).round_trip_us == 30'000);
}

TEST_CASE("admission: accounts belong to identities, not to connections", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId first = master.join("ann");
  const Hello again = master.hello("ann");
  while (master.core().checkpoint() == 0) {
    REQUIRE((master.run_worker() || master.run_storage() || master.serve(first)));
  }
  master.close(first);
  const SessionId second = master.open_again(first);
  master.say(second, again);
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
  const auto accounts = master.core().accounts();
  REQUIRE(accounts.size() == 1);
  REQUIRE(accounts[0].name == "ann");
  // 10 points, 2 epochs, 4 shards; more where the second time had to replay.
  REQUIRE(accounts[0].examples >= 80);
  for (const Traffic* traffic : {&accounts[0].down, &accounts[0].up}) {
    REQUIRE(traffic->units > 0);
    REQUIRE(traffic->commits > 0);
    REQUIRE(traffic->shards > 0);
    REQUIRE(traffic->evaluation == 0);
    REQUIRE(traffic->points == 0);
    REQUIRE(traffic->all == traffic->units + traffic->commits + traffic->shards + traffic->rest());
  }
  REQUIRE(accounts[0].faults == 0);
}

TEST_CASE("admission: whoever comes when all places are taken is told what to do", "[master]") {
  CoreConfig settings = tiny_core_config();
  settings.sessions_max = 2;
  MasterDriver master(tiny_model(), settings);
  const SessionId ann = master.join("ann");
  const SessionId bob = master.open();
  const Hello again = master.hello("bob");
  master.say(bob, again);
  const Refusal refusal = refused(master, master.hello("eve"));
  REQUIRE(refusal.code == ErrorCode::kBusy);
  REQUIRE(refusal.retry);
  REQUIRE(refusal.sentence ==
          "this master has the 2 volunteers that it takes at most: wait until one leaves, or ask "
          "for a larger network.volunteers_max");
  // A volunteer that connects again takes its own place.
  const SessionId back = master.open_again(bob);
  master.say(back, again);
  REQUIRE(master.count<Welcome>(back) == 1);
  REQUIRE(master.is_closed(bob));
  master.close(ann);
  master.join("eve");
}

TEST_CASE("admission: accounts of volunteers that have gone are handed to the store and forgotten",
          "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  for (int i = 0; i < 100; ++i) master.close(master.join("passer-by"));
  REQUIRE(master.core().accounts().size() == 1);  // nothing was lent to them
  const auto ann_account = [&] { return master.core().accounts().at(0); };
  while (ann_account().units_issued == 0) {
    REQUIRE((master.run_worker() || master.run_storage() || master.serve(ann)));
  }
  master.close(ann);
  REQUIRE(master.core().accounts().size() == 1);
  const SessionId bob = master.join("bob");
  const auto next_fold = [&] {
    for (;;) {
      if (!master.storage.empty() && std::holds_alternative<FoldTask>(master.storage.front())) {
        return std::get<FoldTask>(master.storage.front()).accounts;
      }
      REQUIRE((master.run_worker() || master.run_storage() || master.serve(bob)));
    }
  };
  auto accounts = next_fold();
  REQUIRE(accounts.size() == 2);
  for (const AccountRecord& account : accounts) {
    REQUIRE(account.is_final == (account.name == "ann"));
    const std::uint64_t ended = account.units + account.units_refused + account.units_expired;
    if (account.is_final) REQUIRE(account.units_issued == ended);
  }
  REQUIRE(master.core().accounts().size() == 1);
  REQUIRE(master.core().accounts().at(0).name == "bob");
  REQUIRE(master.run_storage());
  accounts = next_fold();
  REQUIRE(accounts.size() == 1);
}

TEST_CASE("admission: every unit that is sent ends in one counter of the account", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  const auto account = [&] { return master.core().accounts().at(0); };
  while (account().units_issued < 2) {
    REQUIRE((master.run_worker() || master.run_storage() || master.serve(ann)));
  }
  const std::uint64_t applied = account().units;
  // A result for other batches is refused, and what else was out expires with the session.
  const TrainUnit unit = master.take<TrainUnit>(ann);
  UnitResult wrong;
  wrong.unit = unit.unit;
  const std::uint64_t out = account().units_issued - applied;
  master.say(ann, wrong);
  REQUIRE(account().units == applied);
  REQUIRE(account().units_refused == 1);
  REQUIRE(account().units_expired == out - 1);
}

}  // namespace gleaner
