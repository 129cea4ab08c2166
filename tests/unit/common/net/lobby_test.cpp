#include "common/net/lobby.hpp"

#include <sys/resource.h>

#include <asio/write.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "common/net/connect.hpp"
#include "common/os/process.hpp"
#include "tests/support/no_descriptors_left.hpp"
#include "tests/unit/common/net/io_fixture.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;

using testing::framed;

constexpr Millis kShort{20};

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// A lobby on loopback, and what it said.
struct Door {
  explicit Door(const LobbyLimits& limits = {})
      : tasks(io.get_executor(), [](const std::string& task,
                                    const std::string& what) { FAIL_CHECK(task + ": " + what); }),
        acceptor(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        lobby(tasks, acceptor, {}, limits, observer()) {
    lobby.start();
  }

  ~Door() {
    lobby.stop();
    for (const auto& link : links) link->abandon();
    testing::run_to_end(io, tasks.stop());
  }

  Lobby::Observer observer() {
    Lobby::Observer o;
    o.on_introduced = [this](Arrival arrival) {
      std::shared_ptr<Link> link = std::move(arrival.link);
      Link::Handler handler;
      handler.on_frame = [this](Bytes payload, std::size_t) { frames.push_back(payload); };
      handler.on_closed = [this](const std::string& reason) { closed.push_back(reason); };
      link->start(std::move(handler));
      links.push_back(std::move(link));
    };
    o.on_turned_away = [this](const std::string& peer, const std::string& reason) {
      turned_away.push_back(peer.empty() ? reason : peer.substr(0, peer.find(':')) + ": " + reason);
    };
    return o;
  }

  asio::ip::tcp::socket& connect(const Bytes& says = {}) {
    peers.emplace_back(io);
    peers.back().connect(acceptor.local_endpoint());
    if (!says.empty()) asio::write(peers.back(), asio::buffer(says));
    return peers.back();
  }

  // Runs until `is_true`; the deadlines of what is tested make it come about.
  void run_until(const std::function<bool()>& is_true) {
    while (!is_true()) {
      io.restart();
      REQUIRE(io.run_one() > 0);
    }
  }

  asio::io_context io;
  TaskGroup tasks;
  asio::ip::tcp::acceptor acceptor;
  std::vector<std::shared_ptr<Link>> links;
  std::vector<Bytes> frames;
  std::vector<std::string> closed, turned_away;
  std::list<asio::ip::tcp::socket> peers;
  Lobby lobby;
};

}  // namespace

TEST_CASE("lobby: who introduces itself becomes a link that delivers the introduction first",
          "[lobby]") {
  Door door;
  const Bytes hello = bytes_of("hello"), more(100'000, 7);
  auto& peer = door.connect(framed(hello));
  asio::write(peer, asio::buffer(framed(more)));
  door.run_until([&] { return door.frames.size() == 2; });
  REQUIRE(door.frames == std::vector<Bytes>{hello, more});
  REQUIRE(door.lobby.waiting() == 0);
  REQUIRE(door.turned_away.empty());
}

TEST_CASE("lobby: silence and a trickle both end when the introduction's time is over", "[lobby]") {
  LobbyLimits limits;
  limits.introduction_time_max = kShort;
  Bytes trickle = framed(bytes_of("hello"));
  trickle.pop_back();
  for (const Bytes& said : {Bytes{}, Bytes{5, 0, 0}, trickle}) {
    Door door(limits);
    door.connect(said);
    door.run_until([&] { return !door.turned_away.empty(); });
    REQUIRE(door.turned_away.at(0) == "127.0.0.1: no whole frame came for 20 ms");
    REQUIRE(door.lobby.waiting() == 0);
    REQUIRE(door.links.empty());
  }
}

TEST_CASE("lobby: other protocols, damage and long introductions are turned away with a sentence",
          "[lobby]") {
  const std::string tls_client_hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  Bytes damaged = framed(bytes_of("hello"));
  damaged.back() ^= 1;
  const std::vector<std::pair<Bytes, std::string>> cases = {
      {bytes_of("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "does not seem to be a Gleaner program"},
      {bytes_of(tls_client_hello), "the other side encrypts"},
      {Bytes(64, 0xff), "does not seem to be a Gleaner program"},
      {Bytes(64, 0), "does not seem to be a Gleaner program"},
      {framed(Bytes(kIntroductionBytesMax + 1, 1)), "where at most 4096 are expected"},
      {damaged, "damaged on the way"},
  };
  for (const auto& [said, sentence] : cases) {
    Door door;
    door.connect(said);
    door.run_until([&] { return !door.turned_away.empty(); });
    REQUIRE_THAT(door.turned_away.at(0), Contains(sentence));
    REQUIRE(door.links.empty());
  }
  Door door;
  door.connect(framed(Bytes(kIntroductionBytesMax, 1)));
  door.run_until([&] { return door.frames.size() == 1; });
}

TEST_CASE("lobby: beyond either limit the one that waited longest goes, and who comes is heard",
          "[lobby]") {
  LobbyLimits limits;
  SECTION("of one address") {
    limits.waiting_per_address_max = 5;
  }
  SECTION("of all") {
    limits.waiting_max = 5;
  }
  Door door(limits);
  for (int i = 0; i < 40; ++i) {
    door.connect();
    door.run_until([&] { return door.turned_away.size() + door.lobby.waiting() == i + 1u; });
    REQUIRE(door.lobby.waiting() <= 5);
  }
  REQUIRE(door.turned_away.size() == 35);
  REQUIRE_THAT(door.turned_away.at(0), Contains("too many connections"));
  asio::write(door.peers.back(), asio::buffer(framed(bytes_of("hello"))));
  door.run_until([&] { return door.frames.size() == 1; });
}

#ifndef __SANITIZE_ADDRESS__  // the sanitizers' own checks of pointers need descriptors
TEST_CASE("lobby: a process without descriptors left says so and accepts when it has some again",
          "[lobby]") {
  Door door;
  door.connect();
  door.run_until([&] { return door.lobby.waiting() == 1; });
  door.peers.emplace_back(door.io);
  auto& peer = door.peers.back();
  peer.open(asio::ip::tcp::v4());
  std::optional<testing::NoDescriptorsLeft> none(std::in_place);
  peer.connect(door.acceptor.local_endpoint());
  door.run_until([&] { return door.turned_away.size() == 2; });
  none.reset();
  REQUIRE_THAT(door.turned_away.at(0), Contains("cannot accept connections"));
  REQUIRE_THAT(door.turned_away.at(1), Contains("its place is needed"));
  asio::write(peer, asio::buffer(framed(bytes_of("hello"))));
  door.run_until([&] { return door.frames.size() == 1; });
}
#endif

TEST_CASE("descriptors: the limit is raised to what the system allows", "[lobby]") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = before.rlim_max / 2;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  REQUIRE(os::raise_descriptor_limit() == before.rlim_max);
  rlimit after{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  REQUIRE(after.rlim_cur == before.rlim_max);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

}  // namespace gleaner
