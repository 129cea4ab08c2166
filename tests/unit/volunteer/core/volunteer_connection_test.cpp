// Dialling, introducing itself, keeping in touch, leaving.
#include <catch2/catch.hpp>

#include "schema/versions.hpp"
#include "tests/support/volunteer_driver.hpp"
#include "tests/unit/volunteer/core/lease_messages.hpp"

namespace gleaner::volunteer {
namespace {

using Phase = Snapshot::Phase;

// Passes time until the next attempt and returns how long that took.
Millis until_next_attempt(VolunteerDriver& driver) {
  const std::uint32_t before = driver.connects;
  Millis waited{0};
  while (driver.connects == before) {
    driver.tick(Millis(1));
    waited += Millis(1);
    REQUIRE(waited < Millis(100'000));
  }
  return waited;
}

}  // namespace

TEST_CASE("volunteer: it dials, introduces itself, and makes ready for the master's model",
          "[volunteer]") {
  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.hello.invite = "sesame";
  VolunteerDriver driver(config);
  driver.handle(Started{});
  REQUIRE(driver.connects == 1);
  REQUIRE(driver.snapshot().phase == Phase::kConnecting);
  driver.handle(Connected{});
  REQUIRE(driver.take<Hello>() == config.hello);
  driver.receive(VolunteerDriver::welcome());
  REQUIRE(driver.work.size() == 1);
  REQUIRE(std::get<Reset>(driver.work.front().work).model == tiny_model());
  REQUIRE(driver.snapshot().phase == Phase::kWaiting);
  REQUIRE(driver.sent.empty());
}

TEST_CASE("volunteer: before its first attempt it gives no reason for another", "[volunteer]") {
  const VolunteerDriver driver;
  REQUIRE_THAT(driver.snapshot().sentence,
               Catch::StartsWith("will try ") && !Catch::Contains("again"));
}

TEST_CASE("volunteer: a master that cannot be reached is named once, with the reason",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(ConnectFailed{"host:7070: Connection refused"});
  REQUIRE(driver.snapshot().sentence == "cannot reach host:7070 yet: Connection refused");
  driver.tick(Millis(100'000));
  driver.handle(Connected{});
  driver.receive(VolunteerDriver::welcome());
  driver.handle(Disconnected{"reset by peer"});
  REQUIRE(driver.snapshot().sentence == "will try host:7070 again: reset by peer");
}

TEST_CASE("volunteer: a refusal for good ends the program with the master's sentence",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(Connected{});
  driver.receive(Refusal{ErrorCode::kInvite, "the invite was revoked", false});
  REQUIRE_FALSE(driver.exit->success);
  REQUIRE(driver.exit->error.code == ErrorCode::kInvite);
  REQUIRE_THAT(driver.exit->error.message, Catch::Contains("the invite was revoked"));
  driver.tick(Millis(100'000));
  REQUIRE(driver.connects == 1);
}

TEST_CASE("volunteer: a refusal for now is tried again, and shown meanwhile", "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(Connected{});
  driver.receive(Refusal{ErrorCode::kBusy, "come back later", true});
  REQUIRE_FALSE(driver.exit.has_value());
  REQUIRE(driver.disconnects == 1);
  driver.handle(Disconnected{"closed"});
  REQUIRE(driver.snapshot().phase == Phase::kRetrying);
  REQUIRE_THAT(driver.snapshot().sentence, Catch::Contains("come back later"));
  until_next_attempt(driver);
}

TEST_CASE("volunteer: it gives up when no master has been reached for the time it was given",
          "[volunteer]") {
  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.retry_first = config.retry_longest = Millis(100);
  config.give_up = Millis(10'000);
  VolunteerDriver driver(config);
  driver.handle(Started{});
  const auto fail_for = [&](Millis time) {
    for (Millis waited{0}; waited < time && !driver.exit; waited += Millis(100)) {
      if (driver.snapshot().phase == Phase::kConnecting) driver.handle(ConnectFailed{"refused"});
      driver.tick(Millis(100));
    }
  };
  fail_for(Millis(9'500));
  REQUIRE_FALSE(driver.exit.has_value());
  // Time with a master does not count, nor does time at rest.
  while (driver.snapshot().phase != Phase::kConnecting) driver.tick(Millis(10));
  driver.handle(Connected{});
  driver.receive(VolunteerDriver::welcome());
  driver.tick(Millis(1));
  driver.handle(Disconnected{"closed"});
  fail_for(Millis(9'500));
  REQUIRE_FALSE(driver.exit.has_value());
  fail_for(Millis(1'000));
  REQUIRE(driver.exit.has_value());
  REQUIRE_FALSE(driver.exit->success);
  REQUIRE_THAT(driver.exit->error.message,
               Catch::Contains("no master for 10 s") && Catch::Contains("refused"));
}

TEST_CASE("volunteer: attempts come at growing intervals, and at short ones after a welcome",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  for (const std::int64_t ceiling : {500, 1'000, 2'000, 4'000}) {
    driver.handle(ConnectFailed{"connection refused"});
    const Millis waited = until_next_attempt(driver);
    REQUIRE(waited >= Millis(ceiling / 2));
    REQUIRE(waited <= Millis(ceiling));
  }
  // A connection alone is no success: a master may accept and drop for ever.
  driver.handle(Connected{});
  driver.handle(Disconnected{"reset"});
  REQUIRE(until_next_attempt(driver) >= Millis(4'000));
  driver.handle(Connected{});
  driver.receive(VolunteerDriver::welcome());
  driver.handle(Disconnected{"reset"});
  REQUIRE(until_next_attempt(driver) <= Millis(500));
}

TEST_CASE("volunteer: a master that chose a protocol it was not offered is not served",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(Connected{});
  Welcome welcome = VolunteerDriver::welcome();
  welcome.protocol = kProtocolMax + 1;
  driver.receive(welcome);
  REQUIRE_FALSE(driver.exit->success);
  REQUIRE(driver.exit->error.code == ErrorCode::kVersion);
}

TEST_CASE("volunteer: a master with an impossible model is told so", "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(Connected{});
  driver.take<Hello>();
  Welcome welcome = VolunteerDriver::welcome();
  welcome.model.hidden = 17;
  driver.receive(welcome);
  REQUIRE_THAT(driver.take<Goodbye>().sentence, Catch::Contains("hidden is 17"));
  REQUIRE(driver.disconnects == 1);
  REQUIRE(driver.work.empty());
}

TEST_CASE("volunteer: a master that breaks the protocol is hung up on", "[volunteer]") {
  const std::vector<Message> breaches = {Message(VolunteerDriver::welcome()),  // a second one
                                         Message(Hello{}), Message(UnitResult{}),
                                         Message(Leaving{})};
  for (const Message& breach : breaches) {
    INFO(message_name(breach));
    VolunteerDriver driver;
    driver.join();
    driver.receive(breach);
    REQUIRE(driver.take<Goodbye>().code == ErrorCode::kProtocol);
    REQUIRE(driver.disconnects == 1);
    driver.receive(TrainUnit{});  // what was under way no longer counts
    REQUIRE(driver.work.empty());
  }
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(Connected{});
  driver.take<Hello>();
  driver.receive(TrainUnit{});
  REQUIRE_THAT(driver.take<Goodbye>().sentence, Catch::Contains("TrainUnit before Welcome"));
}

TEST_CASE("volunteer: a master that does not answer Hello is given up", "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(Connected{});
  driver.take<Hello>();
  const Millis deadline = VolunteerDriver::tiny_config().welcome_deadline;
  driver.tick(deadline - Micros(1));
  REQUIRE(driver.disconnects == 0);
  driver.tick(Micros(1));
  REQUIRE(driver.disconnects == 1);
  // Should even the close hang, it goes on all the same.
  driver.tick(deadline);
  REQUIRE(driver.snapshot().phase == Phase::kRetrying);
  until_next_attempt(driver);
}

TEST_CASE("volunteer: heartbeats are answered at once, with the master's clock", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  RunNews news;
  news.round = 3;
  driver.receive(Heartbeat{777, 0, news});
  const auto reply = driver.take<Heartbeat>();
  REQUIRE(reply.echoed_us == 777);
  REQUIRE(reply.echo_us == static_cast<std::uint64_t>(driver.now().time_since_epoch().count()));
  REQUIRE(driver.snapshot().news == news);
}

TEST_CASE("volunteer: it says something at least as often as it was asked to", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.tick(Millis(999));
  REQUIRE(driver.sent.empty());
  driver.tick(Millis(1));
  driver.take<Heartbeat>();
  driver.tick(Millis(999));
  REQUIRE(driver.sent.empty());
}

TEST_CASE("volunteer: a master that is silent before the first chunk may lose large packets",
          "[volunteer]") {
  for (const bool has_loaded : {false, true}) {
    VolunteerDriver driver;
    driver.join();
    driver.receive(grant(2, 2));
    driver.finish_work();
    if (has_loaded) driver.receive(chunk(0));
    for (int ms = 0; ms < 10'000; ++ms) driver.tick(Millis(1));
    REQUIRE(driver.disconnects == 1);
    const bool is_told = driver.snapshot().sentence.find("large packets") != std::string::npos;
    REQUIRE(is_told != has_loaded);
  }
}

TEST_CASE("volunteer: a silent master is left", "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  const auto wait = [&](int milliseconds) {
    for (; milliseconds > 0; --milliseconds) driver.tick(Millis(1));
  };
  wait(9'999);
  REQUIRE(driver.disconnects == 0);
  driver.receive(Heartbeat{});
  wait(9'999);
  REQUIRE(driver.disconnects == 0);
  wait(1);
  REQUIRE(driver.disconnects == 1);
  REQUIRE(driver.snapshot().sentence ==
          "will try host:7070 again: the master has been silent for 10 s");
}

TEST_CASE("volunteer: one that was frozen says that it was, however its connection ends",
          "[volunteer]") {
  const Refusal refusal{ErrorCode::kStaleLease, "silent for 12 s: its leases have ended", true};
  for (const int end : {0, 1, 2}) {
    VolunteerDriver driver;
    driver.join();
    driver.tick(Millis(12'000));
    REQUIRE(driver.disconnects == 0);  // it was itself that did not listen
    if (end == 0) driver.receive(refusal);
    if (end == 1) driver.handle(Disconnected{"reset by peer"});
    if (end == 2) {
      for (int i = 0; i < 100; ++i) driver.tick(Millis(100));
    }
    const char* reasons[] = {"refused: silent for 12 s", "reset by peer", "silent for 10 s"};
    const std::string sentence = driver.snapshot().sentence;
    REQUIRE_THAT(sentence, Catch::Contains("frozen or suspended for 12.0 s"));
    REQUIRE_THAT(sentence, Catch::Contains(reasons[end]));
    REQUIRE_THAT(sentence, Catch::Contains("starts afresh, under leases of a later epoch"));
  }
}

TEST_CASE("volunteer: a freeze that its session has survived explains nothing later",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.tick(Millis(6'000));
  Heartbeat answer;
  answer.echoed_us = static_cast<std::uint64_t>(driver.now().time_since_epoch().count());
  driver.receive(answer);  // to what it said since
  driver.handle(Disconnected{"reset by peer"});
  REQUIRE(driver.snapshot().sentence == "will try host:7070 again: reset by peer");
}

TEST_CASE("volunteer: after the run it says thanks and rests, or exits when asked to serve once",
          "[volunteer]") {
  const Goodbye finished{ErrorCode::kFinished, "the run is complete"};
  const Goodbye stopped{ErrorCode::kShuttingDown, "the master is shutting down"};
  VolunteerDriver patient;
  patient.join();
  patient.receive(finished);
  REQUIRE_FALSE(patient.exit.has_value());
  patient.handle(Disconnected{"closed"});
  REQUIRE(patient.snapshot().phase == Phase::kFinished);
  REQUIRE(patient.snapshot().sentence == "finished: thank you");
  REQUIRE(patient.snapshot().service.has_value());
  const std::uint32_t connects = patient.connects;
  patient.tick(Millis(3'600'000));
  patient.handle(PauseRequested{"the machine is in use", Millis(0), Millis(0)});
  patient.handle(ResumeRequested{});
  patient.tick(Millis(3'600'000));
  REQUIRE(patient.connects == connects);
  REQUIRE(patient.snapshot().phase == Phase::kFinished);

  VolunteerCoreConfig config = VolunteerDriver::tiny_config();
  config.once = true;
  VolunteerDriver once(config);
  once.join();
  once.receive(stopped);  // not the end of the run
  REQUIRE_FALSE(once.exit.has_value());
  once.handle(Disconnected{"closed"});
  until_next_attempt(once);
  once.join();
  once.receive(finished);
  REQUIRE(once.exit->success);
  REQUIRE(once.snapshot().phase == Phase::kExiting);
}

// ---- Leaving -----------------------------------------------------------------------------------

TEST_CASE("volunteer: a stop before it is connected ends it at once", "[volunteer]") {
  VolunteerDriver dialling;
  dialling.handle(Started{});
  dialling.handle(StopRequested{"asked to"});
  REQUIRE(dialling.exit->success);

  VolunteerDriver pausing;
  pausing.handle(Started{});
  pausing.handle(ConnectFailed{"refused"});
  pausing.handle(StopRequested{"asked to"});
  REQUIRE(pausing.exit->success);
}

TEST_CASE("volunteer: a stop during the introduction leaves as soon as it is welcomed",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(Connected{});
  driver.take<Hello>();
  driver.handle(StopRequested{"the owner is back"});
  REQUIRE_FALSE(driver.exit.has_value());
  REQUIRE(driver.sent.empty());
  driver.receive(VolunteerDriver::welcome());
  REQUIRE(driver.take<Leaving>().reason == "the owner is back");
}

TEST_CASE("volunteer: a stop while it works hands over, then ends with the master's goodbye",
          "[volunteer]") {
  VolunteerDriver driver;
  driver.join();
  driver.handle(StopRequested{"the owner is back"});
  REQUIRE(driver.take<Leaving>().reason == "the owner is back");
  REQUIRE(driver.snapshot().phase == Phase::kLeaving);
  const LeaseRef lease{ShardId{1}, LeaseEpoch{4}};
  driver.receive(ReleaseRequest{lease});
  driver.finish_work({HandOver{lease, 0, 2, 0, 1, {}}});
  REQUIRE(driver.take<HandOver>().lease == lease);
  driver.receive(Goodbye{ErrorCode::kShuttingDown, "all its shards are handed over"});
  REQUIRE(driver.exit->success);
  REQUIRE_THAT(driver.exit->error.message, Catch::Contains("handed over"));
}

TEST_CASE("volunteer: a second stop, a lost connection or a slow master end a leave",
          "[volunteer]") {
  VolunteerDriver impatient;
  impatient.join();
  impatient.handle(StopRequested{"one"});
  impatient.handle(StopRequested{"two"});
  REQUIRE(impatient.exit->success);

  VolunteerDriver cut;
  cut.join();
  cut.handle(StopRequested{"one"});
  cut.handle(Disconnected{"reset"});
  REQUIRE(cut.exit->success);
  REQUIRE_THAT(cut.exit->error.message, Catch::Contains("reset"));

  VolunteerDriver slow;
  slow.join();
  slow.handle(StopRequested{"one"});
  for (Millis waited{0}; waited < Millis(29'000); waited += Millis(1'000)) {
    slow.receive(Heartbeat{});
    slow.tick(Millis(1'000));
    REQUIRE_FALSE(slow.exit.has_value());
  }
  slow.tick(Millis(1'000));
  REQUIRE(slow.exit->success);
  REQUIRE_THAT(slow.exit->error.message, Catch::Contains("without handing over"));
}

TEST_CASE("volunteer: nothing comes out after the end", "[volunteer]") {
  VolunteerDriver driver;
  driver.handle(Started{});
  driver.handle(StopRequested{"asked to"});
  // The driver fails on any effect after Exit.
  driver.handle(Connected{});
  driver.tick(Millis(100'000));
  driver.handle(StopRequested{"again"});
  REQUIRE(driver.connects == 1);
}

}  // namespace gleaner::volunteer
