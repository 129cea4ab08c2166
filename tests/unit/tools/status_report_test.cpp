#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <sstream>

#include "master/see/status_words.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

// Two volunteers; a shard of each, a shard on its way between them, a shard without a holder.
RunStatus sample() {
  RunStatus s;
  s.build = "0.1.0";
  s.progress.stage = RunStage::kTraining;
  s.progress.round = 16;
  s.progress.rounds = 30;
  s.progress.batch = 1127;
  s.progress.batches = 2112;
  s.progress.epoch = 3;
  s.progress.epochs = 6;
  s.progress.staleness = 4;
  s.progress.examples_per_second = 5351;
  s.progress.eta_seconds = 47;
  s.waits_for = "bilbo to load 1 shard";
  s.wait_owner = WaitOwner::kVolunteers;
  s.is_held_up = true;
  s.waits_us = 3'200'000;
  s.progress.volunteers = 2;
  VolunteerEntry atlas;
  atlas.name = "atlas";
  atlas.peer = "10.0.0.2:41234";
  atlas.cores = 8;
  atlas.speed = 300;
  atlas.round_trip_us = 2100;
  atlas.silent_us = 100'000;
  VolunteerEntry bilbo = atlas;
  bilbo.name = "bilbo";
  bilbo.speed = 100;
  bilbo.owes = true;
  bilbo.owes_us = 3'100'000;
  bilbo.units_out = 2;
  s.volunteers = {atlas, bilbo};
  s.shards.resize(4);
  s.shards[0] = {LeaseState::kReady, 0, 120'000'000, 16, 1130, 0, 0, "", ""};
  s.shards[1] = {LeaseState::kReady, 1, 120'000'000, 16, 1130, 0, 0, "", ""};
  s.shards[2] = {LeaseState::kLoading,         1, 3'200'000, 16, 1127, 100, 81, "carla",
                 "it is gone: silent for 10 s"};
  s.shards[3].since_us = 1'000'000;
  s.gone = {{"carla", "silent for 10 s", 3'300'000, 1}};
  return s;
}

std::string joined(const RunStatus& status, const std::string& about) {
  const auto sentences = why(status, about);
  REQUIRE(sentences);
  std::string text;
  for (const std::string& sentence : *sentences) text += sentence + "\n";
  return text;
}

}  // namespace

TEST_CASE("status report: says who holds what, at 100 columns, and programs get all of it",
          "[tools]") {
  const Report report = status_report(sample(), "10.0.0.5:7070", {});
  std::istringstream text(report.for_people({}));
  for (std::string line; std::getline(text, line);) REQUIRE(line.size() <= 100);
  const Json json = report.for_programs();
  REQUIRE(json.at("is_running") == true);
  REQUIRE(json.at("progress").at("batch") == 1127);
  REQUIRE(json.at("progress").at("loss").is_null());
  REQUIRE(json.at("wait").at("wait_owner") == "volunteers");
  REQUIRE(json.at("wait").at("wait_seconds") == Approx(3.2));
  REQUIRE(json.at("volunteers").at(1).at("shards") == Json({1, 2}));
  REQUIRE(json.at("volunteers").at(0).at("share") == Approx(0.75));
  REQUIRE(json.at("shards").at(2).at("holder") == "bilbo");
  REQUIRE(json.at("shards").at(2).at("loaded") == Approx(0.81));
  REQUIRE(json.at("shards").at(3).at("holder").is_null());
  REQUIRE(json.at("gone").at(0).at("reason") == "silent for 10 s");
}

TEST_CASE("status report: JSON.md describes fields that programs get", "[tools]") {
  std::ifstream file(GLEANER_SOURCE_DIR "/tools/JSON.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json json = status_report(sample(), "10.0.0.5:7070", {}).for_programs();
  for (const std::string list : {"volunteers", "shards"}) {
    const std::size_t begin = text.find("- `" + list + "`: ") + list.size() + 6;
    REQUIRE(begin > list.size() + 6);
    const std::string line = text.substr(begin, text.find("\n- ", begin) - begin);
    std::size_t names = 0;
    for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
      const std::size_t end = line.find('`', at + 1);
      INFO(line.substr(at + 1, end - at - 1));
      REQUIRE(json.at(list).at(0).contains(line.substr(at + 1, end - at - 1)));
      ++names;
      at = end;
    }
    REQUIRE(names > 3);
  }
}

TEST_CASE("status report: names of volunteers cannot move the cursor or break the table",
          "[tools]") {
  RunStatus status = sample();
  status.volunteers[0].name = std::string(100, 'x') + "\x1b[2J";
  std::istringstream text(status_report(status, "10.0.0.5:7070", {}).for_people({}));
  for (std::string line; std::getline(text, line);) {
    REQUIRE(line.size() <= 100);
    REQUIRE(line.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("why: a run that is held up says for what, since when, and who can end it", "[tools]") {
  const std::string text = joined(sample(), "run");
  REQUIRE_THAT(text, Catch::Contains("held up for 3.2 s, and waits for bilbo to load 1 shard."));
  REQUIRE_THAT(text, Catch::Contains("The volunteers that are named"));
  REQUIRE_THAT(text, Catch::Contains("bilbo has had work outstanding for 3.1 s (2 units out)"));
  REQUIRE_THAT(text, !Catch::Contains("atlas has had work outstanding"));
  RunStatus running = sample();
  running.is_held_up = false;
  running.waits_for = "the results of batch 1127 from atlas (1 shard)";
  REQUIRE_THAT(joined(running, "run"), Catch::Contains("Nothing holds it up"));
  RunStatus over = sample();
  over.wait_owner = WaitOwner::kNobody;
  REQUIRE_THAT(joined(over, "run"), Catch::Contains("Nothing is waited for."));
}

TEST_CASE("why: a shard says where it is, where it was and why it left", "[tools]") {
  const std::string moving = joined(sample(), "2");
  REQUIRE_THAT(moving, Catch::Contains("Shard 2 is being moved from carla to bilbo, for 3.2 s."));
  REQUIRE_THAT(moving, Catch::Contains("bilbo was sent 81 %"));
  REQUIRE_THAT(moving, Catch::Contains("It left carla because: it is gone: silent for 10 s."));
  REQUIRE_THAT(joined(sample(), "0"), Catch::Contains("trained by atlas"));
  REQUIRE_THAT(joined(sample(), "3"), Catch::Contains("Shard 3 is nobody's, for 1.0 s."));
  RunStatus status = sample();
  status.shards[0].state = LeaseState::kReleasing;
  status.shards[0].moved_why = "with other shares all are done sooner";
  REQUIRE_THAT(joined(status, "0"),
               Catch::Contains("asked back from atlas") && Catch::Contains("all are done sooner"));
}

TEST_CASE("why: a volunteer says what it holds and owes, or why it went", "[tools]") {
  REQUIRE_THAT(joined(sample(), "atlas"), Catch::Contains("It holds 1 of 4 shards: 0.") &&
                                              Catch::Contains("75 %") &&
                                              Catch::Contains("It has no work outstanding."));
  REQUIRE_THAT(joined(sample(), "carla"), Catch::Contains("carla went 3.3 s ago: silent for 10 s"));
  RunStatus status = sample();
  status.volunteers[0].no_shards = "its memory is too small for a shard";
  status.shards[0].holder = 1;
  REQUIRE_THAT(joined(status, "atlas"),
               Catch::Contains("It has no shards: its memory is too small for a shard."));
}

TEST_CASE("why: what there is not is refused with what there is", "[tools]") {
  const auto stranger = why(sample(), "dora");
  REQUIRE_FALSE(stranger);
  REQUIRE(stranger.error().code == ErrorCode::kInvalidArgument);
  REQUIRE_THAT(stranger.error().message, Catch::Contains("atlas, bilbo"));
  const auto beyond = why(sample(), "4");
  REQUIRE_FALSE(beyond);
  REQUIRE_THAT(beyond.error().message, Catch::Contains("0 to 3"));
  REQUIRE_FALSE(why(RunStatus(), "0"));
}

}  // namespace gleaner
