#include "volunteer/status_line.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/captured_stream.hpp"
#include "volunteer/volunteer_status.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

struct Stage {
  explicit Stage(OutputOptions options)
      : status(
            out.stream(), error.stream(), options, [] { return 61u; }, [this] { return now; }) {}

  CapturedStream out;
  CapturedStream error;
  Instant now{};
  StatusLine status;
};

VolunteerStatus training() {
  VolunteerStatus s;
  s.activity = VolunteerActivity::kTraining;
  s.master = "alpha:7070";
  s.shards = {3, 7, 12};
  s.round = 5;
  s.rounds = 60;
  s.epoch = 1;
  s.epochs = 5;
  s.volunteers = 3;
  s.p_at_1 = 0.594;
  s.examples_per_second = 4812;
  s.memory_bytes = std::uint64_t{212} << 20;
  return s;
}

VolunteerStatus doing(VolunteerActivity activity, const std::string& reason) {
  VolunteerStatus s;
  s.activity = activity;
  s.master = "alpha:7070";
  s.reason = reason;
  return s;
}

}  // namespace

TEST_CASE("status: the line says what the volunteer does and why", "[status]") {
  REQUIRE(status_text(training()) ==
          "training shards 3, 7, 12 (round 5 of 60, epoch 1 of 5, 4,812 examples/s, P@1 0.594, 3 "
          "volunteers, 212.0 MiB held)");
  VolunteerStatus retrying = doing(VolunteerActivity::kRetrying, "connection refused");
  retrying.retry_seconds = 4;
  REQUIRE(status_text(retrying) ==
          "waiting for the master at alpha:7070: connection refused; next try in 4 s");
  REQUIRE(status_text(doing(VolunteerActivity::kConnecting, "")) ==
          "connecting to the master at alpha:7070");
  REQUIRE(status_text(doing(VolunteerActivity::kWaiting, "2 more volunteers")) ==
          "waiting for work: the run waits for 2 more volunteers");
  REQUIRE(status_text(doing(VolunteerActivity::kHandingOver, "SIGTERM")) ==
          "handing over no shards: SIGTERM");
  REQUIRE(status_text(doing(VolunteerActivity::kFinished, "")) == "the run is finished");
}

TEST_CASE("status: many shards are counted rather than named", "[status]") {
  VolunteerStatus s = training();
  s.shards.clear();
  for (std::uint32_t i = 0; i < 64; ++i) s.shards.push_back(i);
  REQUIRE_THAT(status_text(s), Catch::Matchers::StartsWith("training shards 0-63 ("));
  for (std::uint32_t& shard : s.shards) shard *= 2;
  REQUIRE_THAT(status_text(s), Catch::Matchers::StartsWith("training 64 shards ("));
  s.shards = {9};
  REQUIRE_THAT(status_text(s), Catch::Matchers::StartsWith("training shard 9 ("));
}

TEST_CASE("status: every activity has a sentence and a name", "[status]") {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(VolunteerActivity::kStopped); ++i) {
    const VolunteerStatus s = doing(static_cast<VolunteerActivity>(i), "because");
    REQUIRE_FALSE(status_text(s).empty());
    const std::string name = Json::parse(status_json(s)).at("activity");
    REQUIRE(name != "unknown");
    REQUIRE(std::find(names.begin(), names.end(), name) == names.end());
    names.push_back(name);
  }
}

TEST_CASE("status: a log gets a line when something changes, not when a number moves", "[status]") {
  Stage stage({OutputMode::kPlain, {}, false, false});
  VolunteerStatus s = training();
  stage.status.update(s);
  for (RoundIndex round = 6; round < 12; ++round) {
    s.round = round;
    s.examples_per_second += 10;
    stage.status.update(s);
  }
  REQUIRE(stage.out.text() == "training shards 3, 7, 12 (epoch 1 of 5)\n");
  // A hundred shards that come one by one are no hundred lines.
  s.shards = {3};
  stage.status.update(s);
  REQUIRE(stage.out.text() == "training shards 3, 7, 12 (epoch 1 of 5)\n");
  s.epoch = 2;
  stage.status.update(s);
  stage.now += std::chrono::seconds(61);
  s.shards = {3, 4};
  stage.status.update(s);
  REQUIRE(stage.out.text() ==
          "training shards 3, 7, 12 (epoch 1 of 5)\ntraining shard 3 (epoch 2 of 5)\n"
          "training shards 3, 4 (epoch 2 of 5)\n");
}

TEST_CASE("status: a night of retries is one line in a log", "[status]") {
  Stage stage({OutputMode::kPlain, {}, false, false});
  stage.status.update(doing(VolunteerActivity::kConnecting, ""));
  for (int attempt = 0; attempt < 100; ++attempt) {
    VolunteerStatus pause = doing(VolunteerActivity::kRetrying, "connection refused");
    for (pause.retry_seconds = 30; pause.retry_seconds > 0; --pause.retry_seconds) {
      stage.status.update(pause);
    }
    stage.status.update(doing(VolunteerActivity::kConnecting, "connection refused"));
  }
  REQUIRE(stage.out.text() ==
          "connecting to the master at alpha:7070\n"
          "waiting for the master at alpha:7070: connection refused\n");
}

TEST_CASE("status: what the core reports is shown, shards by number", "[status]") {
  volunteer::Snapshot core;
  core.phase = volunteer::Snapshot::Phase::kTraining;
  core.sentence = "training";
  core.shards = {ShardId{7}, ShardId{3}};
  RunNews news;
  news.round = 4;
  news.rounds = 60;
  news.epoch = 0;
  news.epochs = 5;
  news.volunteers = 2;
  core.news = news;
  REQUIRE(status_text(status_of(core, "alpha:7070", 0)) ==
          "training shards 3, 7 (round 5 of 60, epoch 1 of 5, 2 volunteers)");
  core.news->waiting_for = "box to load 2 shards";
  REQUIRE(status_news(status_of(core, "alpha:7070", 0)) ==
          "holding shards 3, 7: the run waits for box to load 2 shards (epoch 1 of 5)");
  core.phase = volunteer::Snapshot::Phase::kRetrying;
  core.sentence = "will try alpha:7070 again: refused\x1b";
  core.news.reset();
  REQUIRE(status_text(status_of(core, "alpha:7070", 0)) == "will try alpha:7070 again: refused?");
}

TEST_CASE("status: a night of retries in the core's words is one line too", "[status]") {
  Stage stage({OutputMode::kPlain, {}, false, false});
  volunteer::Snapshot connecting;
  connecting.sentence = "connecting to alpha:7070";
  volunteer::Snapshot pausing;
  pausing.phase = volunteer::Snapshot::Phase::kRetrying;
  pausing.sentence = "will try alpha:7070 again: connection refused";
  for (int attempt = 0; attempt < 100; ++attempt) {
    stage.status.update(status_of(connecting, "alpha:7070", 0));
    stage.status.update(status_of(pausing, "alpha:7070", 0));
  }
  volunteer::Snapshot waiting;
  waiting.phase = volunteer::Snapshot::Phase::kWaiting;
  waiting.sentence = "waiting for the master's answer";
  stage.status.update(status_of(waiting, "alpha:7070", 0));
  REQUIRE(stage.out.text() ==
          "connecting to alpha:7070\nwill try alpha:7070 again: connection refused\n"
          "waiting for the master's answer\n");
}

TEST_CASE("status: on a terminal the line is cut to the width and updated in place", "[status]") {
  Stage stage({OutputMode::kTerminal, {}, false, false});
  stage.status.update(training());
  REQUIRE(stage.out.text() ==
          "\rtraining shards 3, 7, 12 (round 5 of 60, epoch 1 of 5, 4,...\x1b[K");
  VolunteerStatus s = training();
  s.round = 6;
  stage.status.update(s);  // too early, and no news
  REQUIRE(stage.out.text().find("round 6") == std::string::npos);
  stage.now += Millis{100};
  stage.status.update(s);
  REQUIRE_THAT(stage.out.text(), Contains("round 6"));
}

TEST_CASE("status: JSON is one object a line with what is known", "[status]") {
  Stage stage({OutputMode::kJson, {}, false, false});
  stage.status.update(training());
  stage.status.log(LogLevel::kWarning, "odd\n\xff");
  std::istringstream text(stage.out.text());
  std::string line;
  REQUIRE(std::getline(text, line));
  const Json status = Json::parse(line);
  REQUIRE(status.at("event") == "status");
  REQUIRE(status.at("activity") == "training");
  REQUIRE(status.at("shards") == Json::array({3, 7, 12}));
  REQUIRE(status.at("round") == 5);
  REQUIRE(status.at("reason").is_null());
  REQUIRE(status.at("retry_seconds").is_null());
  REQUIRE(std::getline(text, line));
  REQUIRE(Json::parse(line).at("level") == "warning");
  REQUIRE_FALSE(std::getline(text, line));
}

TEST_CASE("status: the journal takes the place of lines", "[status]") {
  std::vector<std::vector<std::string>> entries;
  OutputOptions options;
  options.journal = Journal("volunteer", [&](const auto& fields) { entries.push_back(fields); });
  Stage stage(options);
  stage.status.update(training());
  stage.status.log(LogLevel::kWarning, "odd");
  REQUIRE(entries.size() == 2);
  REQUIRE_THAT(entries[0], Catch::VectorContains(std::string("GLEANER_ACTIVITY=training")));
  REQUIRE_THAT(entries[0], Catch::VectorContains(std::string("GLEANER_SHARDS=[3,7,12]")));
  REQUIRE(entries[1] == std::vector<std::string>{"MESSAGE=odd", "PRIORITY=4",
                                                 "SYSLOG_IDENTIFIER=volunteer", "GLEANER_EVENT=log",
                                                 "GLEANER_LEVEL=warning", "GLEANER_MESSAGE=odd"});
  REQUIRE(stage.out.text() + stage.error.text() == "");
}

TEST_CASE("status: --quiet leaves warnings and errors", "[status]") {
  Stage stage({OutputMode::kPlain, {}, true, false});
  stage.status.update(training());
  stage.status.log(LogLevel::kInfo, "news");
  stage.status.log(LogLevel::kError, "bad\x1b");
  REQUIRE(stage.out.text().empty());
  REQUIRE(stage.error.text() == "error: bad?\n");
}

TEST_CASE("status: CONFIGURATION.md names every member of the JSON form", "[status]") {
  std::ifstream file(GLEANER_SOURCE_DIR "/volunteer/CONFIGURATION.md");
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  const Json status = Json::parse(status_json({}));
  for (const auto& [member, value] : status.items()) {
    INFO(member);
    REQUIRE_THAT(text.str(), Contains("`" + member + "`"));
  }
}

}  // namespace gleaner
