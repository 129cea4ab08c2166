#include <openssl/ssl.h>

#include <asio/ssl/stream.hpp>
#include <asio/write.hpp>
#include <catch2/catch.hpp>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/net/lobby.hpp"
#include "common/net/task_group.hpp"
#include "common/net/tls_context.hpp"
#include "tests/unit/common/net/io_fixture.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;

Bytes text_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

// A lobby that encrypts, unless `is_plain`, and what it said.
struct TlsDoor {
  explicit TlsDoor(LobbyLimits limits = {}, bool is_plain = false)
      : master(KeyPair::make()),
        tls(master),
        tasks(io.get_executor(), [](const std::string& task,
                                    const std::string& what) { FAIL_CHECK(task + ": " + what); }),
        acceptor(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        lobby(tasks, acceptor, options(is_plain), limits, observer()) {
    lobby.start();
  }

  ~TlsDoor() {
    lobby.stop();
    for (const Arrival& arrival : arrivals) arrival.link->abandon();
    for (const auto& link : dialled) link->abandon();
    testing::run_to_end(io, tasks.stop());
  }

  TcpLinkOptions options(bool is_plain) {
    TcpLinkOptions o;
    if (!is_plain) o.tls = &tls;
    return o;
  }

  Lobby::Observer observer() {
    Lobby::Observer o;
    o.on_introduced = [this](Arrival arrival) {
      Link::Handler handler;
      handler.on_frame = [this](Bytes payload, std::size_t) { heard.push_back(payload); };
      handler.on_closed = [](const std::string&) {};
      arrival.link->start(std::move(handler));
      arrivals.push_back(std::move(arrival));
    };
    o.on_turned_away = [this](const std::string&, const std::string& reason) {
      turned_away.push_back(reason);
    };
    return o;
  }

  // Dials with `key`, wants `wanted` to answer, and says hello; the error if it fails.
  void dial(TlsContext* key, const KeyId& wanted) {
    TcpLinkOptions o;
    o.tls = key;
    o.master = wanted;
    dial_tcp(tasks, {"127.0.0.1", acceptor.local_endpoint().port()}, Millis(5000), o,
             [this](Result<std::shared_ptr<Link>> link) {
               if (!link) return failed.push_back(link.error());
               Link::Handler handler;
               handler.on_frame = [this](Bytes payload, std::size_t) {
                 answers.push_back(payload);
               };
               handler.on_closed = [this](const std::string& reason) { closed.push_back(reason); };
               (*link)->start(std::move(handler));
               (*link)->send(text_bytes("hello"), Lane::kOrdered);
               dialled.push_back(*link);
             });
  }

  asio::ip::tcp::socket& connect(const Bytes& says) {
    raw.push_back(std::make_unique<asio::ip::tcp::socket>(io));
    raw.back()->connect(acceptor.local_endpoint());
    if (!says.empty()) asio::write(*raw.back(), asio::buffer(says));
    return *raw.back();
  }

  // A client that is not ours, in whatever way `change` makes it so; true if it was let in.
  void dial_otherwise(const std::function<void(SSL_CTX*)>& change) {
    others.push_back(std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client));
    asio::ssl::context& context = *others.back();
    change(context.native_handle());
    streams.push_back(std::make_unique<asio::ssl::stream<asio::ip::tcp::socket>>(io, context));
    auto& stream = *streams.back();
    stream.lowest_layer().connect(acceptor.local_endpoint());
    stream.async_handshake(asio::ssl::stream_base::client, [&stream, this](asio::error_code error) {
      if (error) return;
      // In TLS 1.3 the client is done before the server has looked at its certificate.
      hello = testing::framed(text_bytes("hello"));
      asio::async_write(stream, asio::buffer(hello), [](asio::error_code, std::size_t) {});
    });
  }

  void run_until(const std::function<bool()>& is_true) {
    while (!is_true()) {
      io.restart();
      REQUIRE(io.run_one() > 0);
    }
  }

  asio::io_context io;
  KeyPair master;
  TlsContext tls;
  TaskGroup tasks;
  asio::ip::tcp::acceptor acceptor;
  std::vector<Arrival> arrivals;
  std::vector<Bytes> heard, answers;
  std::vector<std::string> turned_away, closed;
  std::vector<Error> failed;
  std::vector<std::shared_ptr<Link>> dialled;
  std::vector<std::unique_ptr<asio::ip::tcp::socket>> raw;
  std::vector<std::unique_ptr<asio::ssl::context>> others;
  std::vector<std::unique_ptr<asio::ssl::stream<asio::ip::tcp::socket>>> streams;
  Bytes hello;
  Lobby lobby;
};

}  // namespace

TEST_CASE("tls: both sides know each other's key, and frames of any size pass both ways", "[tls]") {
  TlsDoor door;
  const KeyPair volunteer = KeyPair::make();
  TlsContext own(volunteer);
  door.dial(&own, door.master.id());
  door.run_until([&] { return door.heard.size() == 1; });
  REQUIRE(door.heard[0] == text_bytes("hello"));
  REQUIRE(door.arrivals.at(0).key == volunteer.id());
  const Bytes large(3'000'000, 7), small{1};
  door.arrivals[0].link->send(large, Lane::kOrdered);
  door.arrivals[0].link->send(small, Lane::kOrdered);
  door.dialled.at(0)->send(large, Lane::kOrdered);
  door.run_until([&] { return door.answers.size() == 2 && door.heard.size() == 2; });
  REQUIRE(door.answers == std::vector<Bytes>{large, small});
  REQUIRE(door.heard[1] == large);
  // The end of an encrypted connection is an ordinary end.
  door.arrivals[0].link->close();
  door.run_until([&] { return !door.closed.empty(); });
  REQUIRE(door.closed[0] == "the peer closed the connection");
}

TEST_CASE("tls: another key than the address names ends the connection before anything is shown",
          "[tls]") {
  TlsDoor door;
  TlsContext own(KeyPair::make());
  const KeyId wanted = KeyPair::make().id();
  door.dial(&own, wanted);
  door.run_until([&] { return !door.failed.empty() && !door.turned_away.empty(); });
  REQUIRE(door.failed[0].code == ErrorCode::kIdentity);
  REQUIRE_THAT(door.failed[0].message,
               Contains("WRONG MASTER") && Contains(to_text(door.master.id())) &&
                   Contains(to_text(wanted)) && Contains("Nothing was sent"));
  REQUIRE(door.arrivals.empty());
  REQUIRE(door.heard.empty());
}

TEST_CASE("tls: TLS 1.2 and clients without a certificate or with another kind of key are refused",
          "[tls]") {
  const std::vector<std::function<void(SSL_CTX*)>> changes = {
      [](SSL_CTX* context) { SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION); },
      [](SSL_CTX*) {},
      [](SSL_CTX* context) {
        EVP_PKEY* key = EVP_EC_gen("P-256");
        X509* certificate = X509_new();
        X509_set_pubkey(certificate, key);
        X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
        X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
        X509_sign(certificate, key, EVP_sha256());
        REQUIRE(SSL_CTX_use_certificate(context, certificate) == 1);
        REQUIRE(SSL_CTX_use_PrivateKey(context, key) == 1);
        X509_free(certificate);
        EVP_PKEY_free(key);
      }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO(i);
    TlsDoor door;
    door.dial_otherwise(changes[i]);
    door.run_until([&] { return !door.turned_away.empty(); });
    REQUIRE_THAT(door.turned_away[0], Contains("the TLS handshake failed"));
    REQUIRE(door.arrivals.empty());
  }
}

TEST_CASE("tls: a handshake that does not come to its end is ended by the deadline", "[tls]") {
  LobbyLimits limits;
  limits.introduction_time_max = Millis(30);
  const Bytes hello = {22, 3, 1, 2, 0, 1, 0, 1};
  for (const Bytes& said : {Bytes{}, Bytes{22}, hello}) {
    TlsDoor door(limits);
    door.connect(said);
    door.run_until([&] { return !door.turned_away.empty(); });
    REQUIRE_THAT(door.turned_away[0], Contains("ms"));
    REQUIRE(door.lobby.waiting() == 0);
  }
}

TEST_CASE("tls: noise after a good begin is refused", "[tls]") {
  TlsDoor door;
  Bytes noise = {22, 3, 1, 0, 100};
  noise.resize(2000, 0xee);
  door.connect(noise);
  door.run_until([&] { return !door.turned_away.empty(); });
  REQUIRE_THAT(door.turned_away[0], Contains("the TLS handshake failed"));
}

TEST_CASE("tls: an end in plain text and one that encrypts tell each other so", "[tls]") {
  SECTION("a plain volunteer at a master that encrypts") {
    TlsDoor door;
    door.dial(nullptr, {});
    door.run_until([&] { return !door.turned_away.empty() && !door.closed.empty(); });
    REQUIRE_THAT(door.turned_away[0], Contains("it does not encrypt"));
    REQUIRE_THAT(door.closed[0], Contains("the other side encrypts") && Contains("--insecure"));
  }
  SECTION("a volunteer that encrypts at a plain master") {
    TlsDoor door({}, true);
    TlsContext own(KeyPair::make());
    door.dial(&own, door.master.id());
    door.run_until([&] { return !door.turned_away.empty() && !door.failed.empty(); });
    REQUIRE_THAT(door.turned_away[0], Contains("the other side encrypts"));
    REQUIRE_THAT(door.failed[0].message, Contains("started with --insecure"));
  }
}

TEST_CASE("tls: handshakes of one address have a budget, and silence spends none of it", "[tls]") {
  LobbyLimits limits;
  limits.handshakes_per_address = {2, 0};
  TlsDoor door(limits);
  for (int i = 0; i < 5; ++i) door.connect({});
  for (int i = 0; i < 5; ++i) door.connect(text_bytes("GET /"));
  door.run_until([&] { return door.turned_away.size() == 5; });
  TlsContext own(KeyPair::make());
  for (int i = 0; i < 3; ++i) door.dial(&own, door.master.id());
  door.run_until([&] { return door.arrivals.size() == 2 && door.failed.size() == 1; });
  REQUIRE(door.turned_away.back() == "too many handshakes");
}

TEST_CASE("rate budget: an address that spends leaves others theirs, and all have a common one",
          "[tls]") {
  RateBudget budget({5, 1}, {2, 1});
  const Instant start{};
  REQUIRE((budget.spend("a", start) && budget.spend("a", start)));
  REQUIRE_FALSE(budget.spend("a", start));
  REQUIRE((budget.spend("b", start) && budget.spend("b", start) && budget.spend("c", start)));
  REQUIRE_FALSE(budget.spend("c", start));  // nothing is left for anybody
  REQUIRE(budget.spend("a", start + std::chrono::seconds(1)));
  REQUIRE_FALSE(budget.spend("c", start + std::chrono::seconds(1)));
  for (int i = 0; i < 10'000; ++i) budget.spend(std::to_string(i), start + std::chrono::hours(1));
  REQUIRE(budget.addresses() <= 4096);
}

// Run by hand: what a handshake costs, both sides on this thread.
TEST_CASE("tls: handshakes per second", "[.measure]") {
  LobbyLimits limits;
  limits.handshakes = limits.handshakes_per_address = {1e9, 1e9};
  TlsDoor door(limits);
  TlsContext own(KeyPair::make());
  constexpr int kCount = 1000;
  const std::clock_t begin = std::clock();
  for (int i = 1; i <= kCount; ++i) {
    door.dial(&own, door.master.id());
    door.run_until([&] { return door.heard.size() == static_cast<std::size_t>(i); });
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  WARN(1000 * seconds / kCount << " ms of processor time per connection, both sides");
}

}  // namespace gleaner
