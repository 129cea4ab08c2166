#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "master/see/console.hpp"
#include "master/see/event_text.hpp"
#include "tests/support/captured_stream.hpp"

namespace gleaner {
namespace {

using Json = nlohmann::json;
using Catch::Matchers::Contains;

// A console whose streams are read back and whose clock is set by hand.
struct Stage {
  explicit Stage(OutputOptions options)
      : console(
            out.stream(), error.stream(), options, [] { return 41u; }, [this] { return now; }) {}

  void after(Millis time) { now += time; }

  CapturedStream out;
  CapturedStream error;
  Instant now{};
  Console console;
};

RunProgress at_batch(BatchIndex batch) {
  RunProgress s;
  s.stage = RunStage::kTraining;
  s.batch = batch;
  s.batches = 100;
  s.rounds = 10;
  s.epochs = 1;
  s.volunteers = 1;
  return s;
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::vector<RunEvent> every_event() {
  return {RecipeChosen{},  RunStarted{},      Listening{}, VolunteerJoined{},
          VolunteerLeft{}, CheckpointSaved{}, Evaluated{}, LogLine{},
          RunStopped{},    RunFinished{},     RunFailed{}, PageServed{},
          Paused{},        Resumed{},         RatesCut{},  BackedUp{}};
}

}  // namespace

TEST_CASE("console: the mode follows the stream and the flag", "[console]") {
  const TerminalFacts terminal{true, {true, true}};
  REQUIRE(output_options(terminal, LogFormat::kText, false, false).mode == OutputMode::kTerminal);
  REQUIRE(output_options(terminal, LogFormat::kText, false, false).style.colour);
  REQUIRE(output_options(terminal, LogFormat::kJson, false, false).mode == OutputMode::kJson);
  REQUIRE_FALSE(output_options(terminal, LogFormat::kJson, false, false).style.colour);
  REQUIRE(output_options({false, {true, true}}, LogFormat::kText, false, false).mode ==
          OutputMode::kPlain);
  const Journal journal("master", [](const std::vector<std::string>&) {});
  REQUIRE(output_options({}, LogFormat::kText, false, false, journal).journal);
  REQUIRE_FALSE(output_options({}, LogFormat::kJson, false, false, journal).journal);
  REQUIRE_FALSE(output_options({false, {true, true}}, LogFormat::kText, false, false).style.colour);
}

TEST_CASE("console: a log gets a line every ten seconds, later every minute", "[console]") {
  Stage stage({OutputMode::kPlain, {}, false, false});
  for (int tenth = 0; tenth < 1200; ++tenth) {
    stage.console.update(at_batch(1));
    stage.after(Millis{100});
  }
  REQUIRE(lines(stage.out.text()) == 12);
  for (int tenth = 0; tenth < 6000; ++tenth) {
    stage.console.update(at_batch(2));
    stage.after(Millis{100});
  }
  REQUIRE(lines(stage.out.text()) == 12 + 10);
  REQUIRE_THAT(stage.out.text(), Catch::Matchers::StartsWith("[0:00] 1%, epoch 1/1"));
}

TEST_CASE("console: a log says at once what the run waits for, and not every stage", "[console]") {
  Stage stage({OutputMode::kPlain, {}, false, false});
  RunProgress s = at_batch(1);
  stage.console.update(s);
  s.stage = RunStage::kEvaluating;
  stage.console.update(s);
  REQUIRE(lines(stage.out.text()) == 1);
  s.waiting_for = "a volunteer";
  stage.console.update(s);
  REQUIRE(lines(stage.out.text()) == 2);
  s.waiting_for.clear();
  stage.console.update(s);
  REQUIRE(lines(stage.out.text()) == 2);
}

TEST_CASE("console: a terminal gets one line in place, below those that stay", "[console]") {
  Stage stage({OutputMode::kTerminal, {}, false, false});
  stage.console.update(at_batch(1));
  stage.console.update(at_batch(2));  // too early
  stage.after(Millis{100});
  stage.console.update(at_batch(50));
  stage.console.log(LogLevel::kInfo, "hello");
  REQUIRE(stage.out.text() ==
          "\r1%  e1/1  r1/10  b1/100  1 volunteer  s0\x1b[K"
          "\r50%  e1/1  r1/10  b50/100  1 vol  s0\x1b[K"
          "\r\x1b[Khello\n50%  e1/1  r1/10  b50/100  1 vol  s0");
  stage.console.event(RunFinished{});
  stage.console.update(at_batch(99));
  REQUIRE_THAT(stage.out.text(), Contains("\r\x1b[KFinished 0 epochs."));
  REQUIRE(stage.out.text().find("99%") == std::string::npos);
}

TEST_CASE("console: warnings and errors go to the other stream", "[console]") {
  Stage stage({OutputMode::kPlain, {}, false, false});
  stage.console.log(LogLevel::kInfo, "good");
  stage.console.log(LogLevel::kWarning, "odd");
  stage.console.log(LogLevel::kDebug, "detail");
  stage.console.event(RunFailed{{ErrorCode::kIo, "bad"}, ExitCode::kFailure});
  REQUIRE(stage.out.text() == "[0:00] good\n");
  REQUIRE(stage.error.text() == "warning: odd\nerror: bad\n");
}

TEST_CASE("console: --quiet leaves results, --verbose adds detail", "[console]") {
  Stage quiet({OutputMode::kPlain, {}, true, false});
  Stage verbose({OutputMode::kPlain, {}, false, true});
  for (Stage* stage : {&quiet, &verbose}) {
    stage->console.update(at_batch(1));
    stage->console.event(CheckpointSaved{});
    stage->console.event(VolunteerJoined{});
    stage->console.event(Evaluated{});
    stage->console.log(LogLevel::kDebug, "detail");
  }
  REQUIRE(lines(quiet.out.text()) == 1);
  REQUIRE_THAT(quiet.out.text(), Contains("not evaluated"));
  REQUIRE(lines(verbose.out.text()) == 5);
}

TEST_CASE("console: the journal takes the place of lines, with results above news", "[console]") {
  std::vector<std::string> entries;
  OutputOptions options;
  options.journal = Journal("master", [&](const std::vector<std::string>& fields) {
    entries.push_back(fields[0] + "|" + fields[1] + "|" + fields[3]);
  });
  Stage stage(options);
  stage.console.update(at_batch(1));
  stage.console.log(LogLevel::kWarning, "odd");
  stage.console.log(LogLevel::kDebug, "detail");
  stage.console.event(Evaluated{});
  stage.console.event(RunFailed{{ErrorCode::kIo, "bad"}, ExitCode::kFailure});
  REQUIRE(entries.size() == 4);
  REQUIRE(entries[0] ==
          "MESSAGE=1%, epoch 1/1, round 1/10, batch 1/100, 1 volunteer, lag 0"
          "|PRIORITY=6|GLEANER_EVENT=progress");
  REQUIRE(entries[1] == "MESSAGE=warning: odd|PRIORITY=4|GLEANER_EVENT=log");
  REQUIRE_THAT(entries[2], Contains("|PRIORITY=5|GLEANER_EVENT=evaluated"));
  REQUIRE(entries[3] == "MESSAGE=error: bad|PRIORITY=3|GLEANER_EVENT=error");
  REQUIRE(stage.out.text() + stage.error.text() == "");
}

TEST_CASE("console: JSON is one object a line, and finished is the last", "[console]") {
  Stage stage({OutputMode::kJson, {}, false, false});
  stage.console.update(at_batch(1));
  stage.console.update(at_batch(2));
  stage.after(Millis{1000});
  stage.console.update(at_batch(3));
  stage.console.event(CheckpointSaved{});
  stage.console.log(LogLevel::kWarning, "odd \xff\n name");
  stage.console.event(RunFinished{});
  stage.console.log(LogLevel::kWarning, "too late");
  stage.after(Millis{1000});
  stage.console.update(at_batch(4));
  std::istringstream text(stage.out.text());
  std::vector<std::string> events;
  for (std::string line; std::getline(text, line);) {
    const Json json = Json::parse(line);
    events.push_back(json.at("event"));
  }
  REQUIRE(events ==
          std::vector<std::string>{"progress", "progress", "checkpoint", "log", "finished"});
  REQUIRE(stage.error.text().empty());
}

TEST_CASE("console: with JSON an error is an event and a sentence on the other stream",
          "[console]") {
  Stage stage({OutputMode::kJson, {}, false, false});
  stage.console.event(RunFailed{{ErrorCode::kInvalidData, "bad file"}, ExitCode::kData});
  REQUIRE(stage.out.text() ==
          R"({"event":"error","code":"invalid_data","message":"bad file","exit":3})"
          "\n");
  REQUIRE(stage.error.text() == "error: bad file\n");
}

TEST_CASE("json: the finished event begins with the members that programs rely on", "[console]") {
  RunFinished finished;
  finished.epochs = 3;
  finished.precision = {{0.5, 0.25, 0.125}, {0.0625, 0.75, 0.875}};
  finished.examples_per_second = 5012.34;
  finished.digest = "00ff";
  REQUIRE_THAT(event_json(finished),
               Catch::Matchers::StartsWith(
                   R"({"event":"finished","epochs":3,"p_at_1":0.5,"p_at_3":0.25,"p_at_5":0.125,)"
                   R"("psp_at_1":0.0625,"examples_per_second":5012.3,"digest":"00ff",)"));
  const Json unmeasured = Json::parse(event_json(RunFinished{}));
  REQUIRE(unmeasured.at("p_at_1").is_null());
  REQUIRE(unmeasured.at("examples_per_second").is_null());
  REQUIRE(unmeasured.at("compared") == 0);
  REQUIRE(unmeasured.at("centroid_p_at_1").is_null());
  finished.centroids = CentroidComparison{1000, 0.25, 0.5, 0.125};
  const Json compared = Json::parse(event_json(finished));
  REQUIRE(compared.at("compared") == 1000);
  REQUIRE(compared.at("compared_p_at_1") == 0.25);
  REQUIRE(compared.at("centroid_p_at_1") == 0.5);
  REQUIRE(compared.at("below_centroid") == true);
}

TEST_CASE("json: progress has the page's names, whole counts and rough speeds", "[console]") {
  RunProgress run = at_batch(7);
  run.stage = RunStage::kDone;
  run.round = 3;
  run.epoch = 2;
  run.loss = 0.123;
  run.active = 1472.46;
  const Json json = Json::parse(progress_json(run));
  REQUIRE(json.at("stage") == "done");
  REQUIRE(json.at("batch").is_number_unsigned());
  REQUIRE(json.at("batch") == 7);
  REQUIRE(json.at("round") == 3);
  REQUIRE(json.at("epoch") == 2);
  REQUIRE(json.at("loss") == 0.123);
  REQUIRE(json.at("active") == 1472.5);
  REQUIRE(json.at("eta_seconds").is_null());
}

TEST_CASE("json: EVENTS.md names every event and every member", "[console]") {
  std::ifstream file(GLEANER_SOURCE_DIR "/master/EVENTS.md");
  REQUIRE(file.good());
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  std::vector<std::string> events{progress_json({})};
  for (const RunEvent& event : every_event()) events.push_back(event_json(event));
  REQUIRE(events.size() == std::variant_size_v<RunEvent> + 1);
  for (const std::string& event : events) {
    const Json json = Json::parse(event);
    const std::string name = json.at("event");
    const std::size_t begin = text.find("## `" + name + "`\n");
    INFO(name);
    REQUIRE(begin != std::string::npos);
    const std::string section = text.substr(begin, text.find("\n## ", begin + 1) - begin);
    for (const auto& [member, value] : json.items()) {
      if (member == "event") continue;
      INFO(member);
      REQUIRE_THAT(section, Contains("`" + member + "`"));
    }
    // And nothing that does not exist.
    REQUIRE(static_cast<std::size_t>(std::count(section.begin(), section.end(), '\n')) <=
            json.size() - 1 + 8);
  }
}

}  // namespace gleaner
