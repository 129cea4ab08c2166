// The answers that a tool gets that asks how a run stands.
#include <catch2/catch.hpp>

#include "schema/versions.hpp"
#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

Observe question() {
  return {kProtocolMin, kProtocolMax, kBuildVersion, ""};
}

RunStatus asked(MasterDriver& master) {
  const SessionId id = master.open();
  master.say(id, question());
  REQUIRE(master.is_closed(id));
  return master.take<RunStatus>(id);
}

}  // namespace

TEST_CASE("status: who asks is answered, and leaves nothing behind", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  master.tick();
  const RunStatus status = asked(master);
  REQUIRE(status.protocol == kProtocolMax);
  REQUIRE(status.life == 1);
  REQUIRE(status.progress.rounds == master.plan().round_count());
  REQUIRE(status.shards.size() == tiny_model().output_shards);
  REQUIRE(status.progress.volunteers == 1);
  REQUIRE(status.volunteers.size() == 1);
  REQUIRE(status.volunteers[0].name == "ann");
  // Neither somebody who came nor somebody who was turned away.
  REQUIRE(master.notices<VolunteerJoined>().size() == 1);
  for (const LogLine& remark : master.notices<LogLine>()) REQUIRE(remark.kind != "turned_away");
  REQUIRE(master.core().accounts().size() == 1);
  REQUIRE(master.held_by(ann) == tiny_model().output_shards);
}

TEST_CASE("status: a run without volunteers waits for a person, since the last one went",
          "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  master.tick();
  master.tick(Millis(3000));
  RunStatus status = asked(master);
  REQUIRE(status.progress.stage == RunStage::kWaiting);
  REQUIRE(status.is_held_up);
  REQUIRE(status.wait_owner == WaitOwner::kOperator);
  REQUIRE_THAT(status.waits_for, Catch::Contains("none is connected"));
  REQUIRE(status.waits_us == 3'000'000);
  const SessionId ann = master.join("ann");
  master.close(ann);
  master.tick(Millis(500));
  status = asked(master);
  REQUIRE(status.waits_us == 500'000);
  REQUIRE(status.gone.size() == 1);
  REQUIRE(status.gone[0].name == "ann");
  REQUIRE(status.gone[0].ago_us == 500'000);
  REQUIRE(status.gone[0].shards == tiny_model().output_shards);
  REQUIRE(status.shards[0].state == LeaseState::kFree);
  REQUIRE_FALSE(status.shards[0].holder);
  REQUIRE(status.shards[0].held_before == "ann");
  REQUIRE_THAT(status.shards[0].moved_why, Catch::StartsWith("it is gone: "));
}

TEST_CASE("status: the volunteer that is waited for is named, and since when", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  master.hold(ann);
  master.settle();
  master.tick(Millis(700));
  const RunStatus status = asked(master);
  REQUIRE(status.wait_owner == WaitOwner::kVolunteers);
  REQUIRE(status.is_held_up);
  REQUIRE_THAT(status.waits_for, Catch::Contains("ann to load"));
  REQUIRE(status.waits_us == 700'000);
  REQUIRE(status.volunteers[0].owes);
  REQUIRE(status.volunteers[0].owes_us == 700'000);
  REQUIRE(status.shards[0].state == LeaseState::kLoading);
  REQUIRE(status.shards[0].holder == 0U);
}

TEST_CASE("status: who speaks another protocol is refused", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const auto refused = [&](const Observe& observe) {
    const SessionId id = master.open();
    master.say(id, observe);
    REQUIRE(master.is_closed(id));
    REQUIRE(master.count<RunStatus>(id) == 0);
    return master.take<Refusal>(id);
  };
  Observe newer = question();
  newer.protocol_min = newer.protocol_max = kProtocolMax + 1;
  REQUIRE(refused(newer).code == ErrorCode::kVersion);
  const SessionId id = master.open();
  master.say(id, question());
  REQUIRE(master.count<RunStatus>(id) == 1);
}

TEST_CASE("status: a limited number is answered between two ticks, the others are to try again",
          "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  master.tick();
  bool is_refused = false;
  for (int i = 0; i < 50 && !is_refused; ++i) {
    const SessionId id = master.open();
    master.say(id, question());
    is_refused = master.count<Refusal>(id) == 1;
    if (is_refused) REQUIRE(master.take<Refusal>(id).retry);
  }
  REQUIRE(is_refused);
  master.tick(Millis(100));
  asked(master);
}

TEST_CASE("status: a volunteer that asks as a tool does is let go", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  const SessionId ann = master.join("ann");
  master.say(ann, question());
  REQUIRE(master.is_closed(ann));
  REQUIRE(master.take<Refusal>(ann).code == ErrorCode::kProtocol);
}

TEST_CASE("status: after a restart it shows the last evaluation until the next one", "[master]") {
  ResumePoint resume{2, false};
  resume.last_precision = {{0.5, 0.25, 0.125}, {0.0625, 0.75, 0.875}};
  MasterDriver master(tiny_model(), tiny_core_config(), resume);
  REQUIRE(asked(master).progress.precision.at_1() == 0.5);
}

TEST_CASE("status: two machines of one name are two", "[master]") {
  MasterDriver master(tiny_model(), tiny_core_config());
  master.join_stranger("box");
  const SessionId second = master.join_stranger("box");
  master.join_stranger("box");
  const auto names = [&] {
    std::vector<std::string> all;
    for (const VolunteerEntry& v : master.core().status().volunteers) all.push_back(v.name);
    return all;
  };
  REQUIRE(names() == std::vector<std::string>{"box", "box 2", "box 3"});
  master.close(second);
  master.join_stranger("box");
  REQUIRE(names() == std::vector<std::string>{"box", "box 3", "box 2"});
}

}  // namespace gleaner
