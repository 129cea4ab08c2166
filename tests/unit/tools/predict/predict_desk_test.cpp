#include "storage/infer/predict_desk.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "storage/engine/memory_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using Catch::Contains;
using test::require_value;

constexpr const char* kQuestion =
    R"({"inputs": [{"features": [0, 3], "values": [0.5, 1]}], "top": 2})";

struct Desk {
  Desk() : run(test::open_small(disk)) { test::require_ok(test::train_to(*run, 1)); }

  PredictDesk::Source source() {
    PredictDesk::Source source;
    source.open = [this] { return RunStore::open(disk.share()); };
    source.state = [this] { return std::string(has_changed ? "changed" : ""); };
    source.log = [this](const std::string& sentence) { said.set_value(sentence); };
    return source;
  }

  static PredictAnswer ask(PredictDesk& desk, std::string body) {
    auto answered = std::make_shared<std::promise<PredictAnswer>>();
    desk.ask({std::move(body), PredictForm::kJson, {}, [answered](PredictAnswer answer) {
                answered->set_value(std::move(answer));
              }});
    return answered->get_future().get();
  }

  // Asks again until an answer is as wanted; the last answer when none is.
  template <typename Wanted>
  static PredictAnswer ask_until(PredictDesk& desk, const Wanted& is_wanted) {
    constexpr int kMost = 100'000;
    PredictAnswer answer = ask(desk, kQuestion);
    for (int i = 0; i < kMost && !is_wanted(answer); ++i) answer = ask(desk, kQuestion);
    return answer;
  }

  MemoryStore disk;
  std::unique_ptr<RunStore> run;
  std::atomic<bool> has_changed = false;
  std::promise<std::string> said;
};

}  // namespace

TEST_CASE("predict desk: it answers by numbers where there are no names", "[predict]") {
  Desk bench;
  const auto desk = PredictDesk::on_demand(bench.source(), {}, "");
  CHECK_FALSE(desk->figures().has_model);
  const PredictAnswer answer = Desk::ask(*desk, kQuestion);
  CHECK(answer.status == 200);
  CHECK_THAT(answer.body, Contains("\"checkpoint\":1,\"way\":\"exact\""));
  CHECK(desk->figures().has_model);
  CHECK(desk->figures().requests == 1);
  CHECK(desk->figures().examples == 1);
}

TEST_CASE("predict desk: a question that cannot be read is the asker's fault", "[predict]") {
  Desk bench;
  const auto desk = PredictDesk::on_demand(bench.source(), {}, "");
  CHECK(Desk::ask(*desk, "{").status == 400);
  CHECK_THAT(Desk::ask(*desk, R"({"inputs": []})").body, Contains("inputs: "));
  CHECK(desk->figures().refused == 2);
}

TEST_CASE("predict desk: a store that cannot be read now may be later", "[predict]") {
  PredictDesk::Source source;
  source.open = []() -> Result<std::unique_ptr<RunStore>> {
    return Error{ErrorCode::kNotFound, "no store yet"};
  };
  const auto desk = PredictDesk::on_demand(source, {}, "");
  const PredictAnswer answer = Desk::ask(*desk, kQuestion);
  CHECK(answer.status == 503);
  CHECK(answer.body == "no store yet\n");
  CHECK_FALSE(PredictDesk::follow(source, {}, "").ok());
}

TEST_CASE("predict desk: its limits refuse with the reason, and say when to come back",
          "[predict]") {
  Desk bench;
  AnsweringOptions options;
  SECTION("too many wait") {
    options.limits.requests_waiting_max = 0;
    const auto desk = PredictDesk::on_demand(bench.source(), options, "");
    CHECK(Desk::ask(*desk, kQuestion).status == 503);
  }
  SECTION("too many inputs") {
    options.limits.inputs_max = 1;
    const auto desk = PredictDesk::on_demand(bench.source(), options, "");
    const PredictAnswer answer =
        Desk::ask(*desk, R"({"inputs": [{"features": [1]}, {"features": [2]}]})");
    CHECK(answer.status == 400);
    CHECK_THAT(answer.body, Contains("gleaner serve"));
  }
  SECTION("the budget is spent") {
    options.limits.processor_fraction = 1e-6;
    options.limits.seconds_saved_max = 1e-9;
    const auto desk = PredictDesk::on_demand(bench.source(), options, "");
    // The system counts a thread's time in steps that are longer than a question takes.
    PredictAnswer answer =
        Desk::ask_until(*desk, [](const PredictAnswer& a) { return a.status != 200; });
    CHECK(answer.status == 429);
    CHECK(answer.retry_after_s > 1);
  }
}

TEST_CASE("predict desk: a followed store's newer checkpoint answers", "[predict]") {
  Desk bench;
  const auto desk = require_value(PredictDesk::follow(bench.source(), {}, ""));
  CHECK_THAT(Desk::ask(*desk, kQuestion).body, Contains("\"checkpoint\":1,"));
  test::require_ok(test::train_to(*bench.run, 2));
  bench.has_changed = true;
  desk->look_again();
  CHECK_THAT(bench.said.get_future().get(), Contains("checkpoint 2 of run "));
  // It is taken over between two questions, a moment after it was read.
  const PredictAnswer answer = Desk::ask_until(*desk, [](const PredictAnswer& a) {
    return a.body.find("\"checkpoint\":2,") != std::string::npos;
  });
  CHECK_THAT(answer.body, Contains("\"checkpoint\":2,"));
}

}  // namespace gleaner
