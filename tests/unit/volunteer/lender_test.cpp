// A lender hears of its machine and of the run, and tells its owner.
#include "volunteer/lender.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/storage/temporary_folder.hpp"
#include "volunteer/threaded_client.hpp"

namespace gleaner::volunteer {
namespace {

struct Lines : LogSink {
  void log(LogLevel, std::string_view message) override { lines.emplace_back(message); }

  [[nodiscard]] auto count(const std::string& line) const {
    return std::ranges::count(lines, line);
  }

  std::vector<std::string> lines;
};

// A lender on a machine about which no file tells, whose client never gets a connection.
struct Scene {
  Scene() {
    std::filesystem::create_directories(place.path() + "/root");
    std::filesystem::create_directories(place.path() + "/state");
  }

  ThreadedClient::Options client_options() {
    ThreadedClient::Options options;
    options.dial = [this](const Client::Dialled&) { ++dials; };
    options.on_change = [](const Snapshot&, std::uint64_t) {};
    options.on_exit = [](const Exit&) {};
    return options;
  }

  Lender::Options lender_options(Rules rules) {
    Lender::Options options;
    options.limits.rules = std::move(rules);
    options.root = place.path() + "/root";
    options.name = "atlas";
    options.master = "10.0.0.5:7070";
    options.state_folder = place.path() + "/state";
    return options;
  }

  test::TemporaryFolder place;
  asio::io_context io{1};
  Lines log;
  int dials = 0;
  ThreadedClient client{io, client_options()};
};

}  // namespace

TEST_CASE("lender: the client may start once something is known of the machine", "[lender]") {
  Scene scene;
  Lender lender(scene.io, scene.client, scene.log, scene.lender_options({}));
  bool is_known = false;
  lender.on_first_verdict = [&] {
    CHECK_FALSE(is_known);  // once
    is_known = true;
    scene.client.start();
  };
  while (!is_known || scene.dials == 0) scene.io.run_one();
  CHECK(scene.dials == 1);
}

TEST_CASE("lender: a machine's owner is told for whom it works, once a run", "[lender]") {
  Scene scene;
  Lender lender(scene.io, scene.client, scene.log, scene.lender_options({}));
  CHECK(scene.log.count("no control socket: there is no folder for it; status and pause take one: "
                        "give --control another path") == 1);
  const std::size_t lines = scene.log.lines.size();
  Snapshot snapshot;
  lender.note(snapshot, 0);
  CHECK(scene.log.lines.size() == lines);
  snapshot.run = "birds";
  snapshot.purpose = "Names birds by their songs.";
  lender.note(snapshot, 0);
  lender.note(snapshot, 1000);
  CHECK(scene.log.count("works for the run birds: Names birds by their songs.") == 1);
  snapshot.run = "plants";
  snapshot.purpose.clear();
  lender.note(snapshot, 0);
  CHECK(scene.log.count("works for the run plants") == 1);
}

TEST_CASE("lender: a finished run's thanks are kept, and the owner hears of a refusal",
          "[lender]") {
  Scene scene;
  {
    Lender lender(scene.io, scene.client, scene.log, scene.lender_options({}));
    Snapshot snapshot;
    snapshot.thanks_refused = "the signature does not fit";
    lender.note(snapshot, 0);
    CHECK(scene.log.count("the master's thanks are not kept: the signature does not fit") == 1);
    snapshot.service.emplace();
    lender.note(snapshot, 0);
    lender.note(snapshot, 0);
  }
  const std::vector<std::string> kept = kept_thanks(scene.place.path() + "/state");
  REQUIRE(kept.size() == 1);
  CHECK_THAT(kept[0], Catch::Contains("10.0.0.5:7070"));
}

}  // namespace gleaner::volunteer
