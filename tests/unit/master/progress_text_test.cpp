#include <catch2/catch.hpp>

#include "master/see/event_text.hpp"
#include "master/see/status_words.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

constexpr TextStyle kPlain{};
constexpr TextStyle kRich{true, true};

RunProgress busy() {
  RunProgress s;
  s.stage = RunStage::kTraining;
  s.round = 11;
  s.rounds = 60;
  s.batch = 768;
  s.batches = 3840;
  s.epoch = 1;
  s.epochs = 5;
  s.examples_per_second = 5012.4;
  s.loss = 3.2104;
  s.precision.p[0] = 0.5941;
  s.volunteers = 3;
  s.staleness = 2;
  s.bytes_down = 112.3;
  s.bytes_up = 156.4;
  s.eta_seconds = 151;
  return s;
}

std::string without_escapes(std::string text) {
  for (std::size_t begin = 0; (begin = text.find('\x1b')) != std::string::npos;) {
    text.erase(begin, text.find('m', begin) + 1 - begin);
  }
  return text;
}

}  // namespace

TEST_CASE("progress: a wide terminal shows every fact", "[progress]") {
  REQUIRE(progress_line(busy(), 200, kPlain) ==
          "[#####.......................]  20%  epoch 2/5  round 12/60  batch 768/3840  "
          "5,012 examples/s  loss 3.210  P@1 0.594  3 volunteers  lag 2  112 B down 156 B up an "
          "example  ETA 3 min");
}

TEST_CASE("progress: what matters least is shortened, then left out", "[progress]") {
  REQUIRE(progress_line(busy(), 80, kPlain) ==
          "20% e2/5 r12/60 5,012 ex/s loss 3.21 P@1 0.594 3 vol s2 112/156 B ETA 3 min");
  REQUIRE(progress_line(busy(), 40, kPlain) == "20% 5,012 ex/s P@1 0.594 ETA 3 min");
  REQUIRE(progress_line(busy(), 14, kPlain) == "20% P@1 0.594");
  REQUIRE(progress_line(busy(), 3, kPlain) == "20%");
  REQUIRE(progress_line(busy(), 2, kPlain).empty());
}

TEST_CASE("progress: a line never exceeds the width, with or without colours", "[progress]") {
  RunProgress waiting = busy();
  waiting.waiting_for = "1 volunteer: start gleaner-volunteer höst:7070 somewhere";
  RunProgress starting;
  RunProgress evaluating = busy();
  evaluating.stage = RunStage::kEvaluating;
  for (const RunProgress& snapshot : {busy(), waiting, starting, evaluating}) {
    for (unsigned width = 0; width < 200; ++width) {
      const std::string plain = progress_line(snapshot, width, kPlain);
      const std::string rich = without_escapes(progress_line(snapshot, width, kRich));
      REQUIRE(display_width(plain) <= width);
      REQUIRE(display_width(rich) <= width);
      REQUIRE(plain.find('\x1b') == std::string::npos);
    }
  }
}

TEST_CASE("progress: the bar is full when the last batch is done and not before", "[progress]") {
  RunProgress s = busy();
  s.batch = s.batches - 1;
  REQUIRE_THAT(progress_line(s, 170, kPlain), Contains("#.]  99%"));
  s.batch = s.batches;
  s.round = s.rounds;
  s.epoch = s.epochs;
  const std::string line = progress_line(s, 170, kPlain);
  REQUIRE_THAT(line, Contains("##]  100%  epoch 5/5  round 60/60  batch 3840/3840"));
}

TEST_CASE("progress: a run that waits says for what", "[progress]") {
  RunProgress s = busy();
  s.stage = RunStage::kWaiting;
  s.volunteers = 1;
  s.waiting_for = "shard 3 of box\x1b[2J to answer";
  REQUIRE(progress_line(s, 120, kPlain) ==
          "waiting for shard 3 of box?[2J to answer  (round 12 of 60, 1 volunteer)");
  REQUIRE_THAT(progress_log_line(s), Catch::Matchers::StartsWith("waiting for shard 3 of box?[2J"));
}

TEST_CASE("progress: a log line holds every fact in words", "[progress]") {
  REQUIRE(progress_log_line(busy()) ==
          "20%, epoch 2/5, round 12/60, batch 768/3840, 5,012 examples/s, loss 3.210, P@1 0.594, "
          "3 volunteers, lag 2, 112 B down 156 B up an example, ETA 3 min");
}

TEST_CASE("progress: what is not measured yet is left out", "[progress]") {
  RunProgress s;
  s.stage = RunStage::kTraining;
  s.rounds = 2;
  s.batches = 10;
  s.epochs = 1;
  REQUIRE(progress_log_line(s) == "0%, epoch 1/1, round 1/2, batch 0/10, 0 volunteers, lag 0");
}

TEST_CASE("progress: events read as sentences", "[progress]") {
  const PageServed::Program program{"http://127.0.0.1:8080/gleaner-volunteer", "aarch64", "0a1b"};
  PageServed shared{"http://127.0.0.1:8080", "abc", false, {}, "http://ADDRESS:8080"};
  REQUIRE(event_line(shared, kPlain) ==
          "See the run at http://127.0.0.1:8080/#abc\n"
          "Other machines see it at http://ADDRESS:8080/#INVITE, with an invite from:\n"
          "  gleaner invite create STORE --role observer --reusable");
  shared.takes_invite = false;
  REQUIRE_THAT(event_line(shared, kPlain), EndsWith("it at http://ADDRESS:8080"));
  REQUIRE_THAT(event_line(PageServed{"http://127.0.0.1:8080", "", true, program}, kPlain),
               Contains("is taken)") && Contains("aarch64 Linux") &&
                   Contains("ssh HOST curl -sS " + program.url + " > gleaner-volunteer") &&
                   Contains("'0a1b  gleaner-volunteer' | sha256sum -c"));
  REQUIRE(event_line(VolunteerJoined{"box\n1", "192.0.2.1:5", 4, std::uint64_t{8} << 30, "avx2", 3},
                     kPlain) ==
          "+ box?1 (192.0.2.1:5) joined: 4 threads, avx2, 8.0 GiB (3 volunteers now)");
  REQUIRE(event_line(VolunteerLeft{"box1", "connection lost", false, 5, 1}, kPlain) ==
          "- box1 left: connection lost; 5 shards lent again to others (1 volunteer now)");
  REQUIRE(event_line(VolunteerLeft{"box1", "said goodbye", true, 1, 0}, kPlain) ==
          "- box1 left: said goodbye; 1 shard handed over to others (0 volunteers now)");
  CheckpointSaved saved;
  saved.record.checkpoint = 12;
  saved.rounds = 60;
  saved.record.epoch = 1;
  saved.epochs = 5;
  saved.ends_epoch = true;
  saved.record.loss = 3.2;
  saved.record.active = 1016.4;
  saved.record.examples_per_second = 5012;
  REQUIRE(event_line(saved, kPlain) ==
          "checkpoint 12 of 60 saved, epoch 1 of 5 done: loss 3.2000, 1,016 active neurons an "
          "example, 5,012 examples/s");
  const Evaluated evaluated{
      12, 1, 5, {5188, true, {{0.6, 0.5, 0.4}, {0.3, 0.2, 0.1}}, -1, -1, {}, 5188}, 2.25};
  REQUIRE(event_line(evaluated, kPlain) ==
          "epoch 1 of 5: P@1 0.6000  P@3 0.5000  P@5 0.4000  PSP@1 0.3000  PSP@3 0.2000  PSP@5 "
          "0.1000  (all 5,188 test examples in 2.2 s)");
  Evaluated sample{
      12, 2, 6, {10'000, false, {{0.532, 0.5, 0.4}, {0.3, 0.2, 0.1}, 0.0098}, -1, -1, {}, 99'570}};
  REQUIRE_THAT(event_line(sample, kPlain),
               StartsWith("epoch 2 of 6: P@1 0.5320 +/- 0.0098  P@3 0.5000") &&
                   EndsWith("  (a sample of 10,000 of 99,570 test examples)"));
  REQUIRE_THAT(event_line(sample, {false, true}), Contains("P@1 0.5320 ± 0.0098  P@3"));
  REQUIRE_THAT(event_line(RunStopped{4, 60, false, "dir"}, kPlain),
               Contains("checkpoint 4 of 60: the open round was given up") && Contains("resumes"));
  RunFinished finished;
  finished.epochs = 5;
  finished.digest = "abc";
  finished.store = "dir";
  finished.checkpoint = 60;
  REQUIRE(event_line(finished, kPlain) ==
          "Finished 5 epochs.\nnot evaluated\nmodel digest abc  (checkpoint 60 in dir)");
  finished.precision = evaluated.evaluation.precision;
  REQUIRE_THAT(
      event_line(finished, kPlain),
      Contains("\nP@1 0.6000") && EndsWith("0.1000\nmodel digest abc  (checkpoint 60 in dir)"));
  finished.precision = sample.evaluation.precision;
  finished.evaluated = 10'000;
  finished.test_points = 99'570;
  finished.test = "test.txt";
  REQUIRE_THAT(
      event_line(finished, kPlain),
      EndsWith("\nThe precisions above are of a sample of 10,000 test examples. To score all "
               "99,570, run: gleaner evaluate dir --data test.txt"));
  finished.evaluated_all = true;
  REQUIRE_THAT(event_line(finished, kPlain), !Contains("gleaner evaluate"));
  REQUIRE_THAT(event_line(finished, kPlain), !Contains("centroid"));
  finished.centroids = CentroidComparison{1000, 0.177, 0.232, 0.02};
  finished.recipe = "auto";
  REQUIRE_THAT(
      event_line(finished, kPlain),
      EndsWith("\nwarning: the network is worse than the nearest label centroid, which needs no "
               "training: P@1 0.1770 against 0.2320 on the same 1,000 test examples. Train it for "
               "more epochs (the same command with a higher --epochs), or begin a new run with "
               "--recipe best."));
  finished.recipe = "best";
  REQUIRE_THAT(event_line(finished, kPlain), EndsWith("with a higher --epochs)."));
  finished.evaluations_since_best = 2;
  REQUIRE_THAT(event_line(finished, kPlain), EndsWith("with a higher --patience)."));
  finished.centroids->halfwidth = 0.06;
  REQUIRE_THAT(event_line(finished, kPlain), !Contains("centroid"));
  finished.already = true;
  REQUIRE_THAT(event_line(finished, kPlain), Contains("The run in dir is finished already."));
  REQUIRE(event_line(RunFailed{{ErrorCode::kBusy, "a\x1b"}, ExitCode::kStore}, kRich) ==
          "\x1b[31merror: \x1b[0ma?");
}

TEST_CASE("progress: the console tells for whom the join line is", "[progress]") {
  const std::string line = "gleaner://h:1/KEY.INVITE";
  const std::string own = event_line(Listening{"0.0.0.0:1", line, true, {"10.0.0.3"}, "run"}, {});
  CHECK_THAT(own, Contains("Your own machines join with:\n  gleaner-volunteer " + line));
  CHECK_THAT(own, Contains("Keep this line to yourself"));
  CHECK_THAT(own, Contains("For other people:\n  gleaner invite create run --reusable"));
  CHECK_THAT(own, Contains("--advertise names another: 10.0.0.3"));
  for (const Listening& other : {Listening{"0.0.0.0:1", line, false, {}, "run"},
                                 Listening{"0.0.0.0:1", "h:1 --insecure", true, {}, "run"}}) {
    CHECK(event_line(other, {}) ==
          "Listening on 0.0.0.0:1. Volunteers join with:\n  gleaner-volunteer " + other.join);
  }
}

TEST_CASE("progress: results and warnings matter more than checkpoints", "[progress]") {
  CheckpointSaved saved;
  REQUIRE(importance(saved) == LogLevel::kDebug);
  saved.ends_epoch = true;
  REQUIRE(importance(saved) == LogLevel::kInfo);
  REQUIRE(importance(Evaluated{}) == LogLevel::kWarning);
  REQUIRE(importance(LogLine{LogLevel::kDebug, ""}) == LogLevel::kDebug);
  REQUIRE(importance(RunFailed{}) == LogLevel::kError);
}

}  // namespace gleaner
