// One process that does a master harm in one of these ways, until it is killed:
// `gleaner-attacker KIND COUNT LINE...`. It is cheap, so that what it takes of a shared machine
// hides little: it skips handshakes where it can, reads only what it needs, and computes nothing.
// It comes from many addresses of the loopback network, and by the invites of the lines in turn.
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/access/key_pair.hpp"
#include "common/limits.hpp"
#include "common/net/connect.hpp"
#include "common/net/frame.hpp"
#include "common/net/task_group.hpp"
#include "common/net/tls_context.hpp"
#include "common/os/process.hpp"
#include "common/time.hpp"
#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {
namespace {

using asio::ip::tcp;

constexpr std::size_t kUnfinishedBytes = std::size_t{63} << 20;
// After this many connections from one network of loopback addresses, the next network is used.
constexpr std::uint32_t kAddresses = 250;

struct Attack {
  std::string kind;
  asio::io_context io{1};
  std::vector<MasterAddress> masters;
  std::uint64_t come = 0;    // connections that were begun
  std::uint64_t joined = 0;  // of them, that were welcomed
};

// One connection as a volunteer with a key that nobody has seen.
class Session {
 public:
  Session(Attack& attack, float speed) : attack_(attack), socket_(attack.io), timer_(attack.io) {
    const std::uint64_t number = attack_.come++;
    master_ = &attack_.masters[number % attack_.masters.size()];
    from_ = tcp::endpoint(
        asio::ip::address_v4(0x7F00'0101 + static_cast<std::uint32_t>(number % kAddresses)), 0);
    hello_.protocol_min = kProtocolMin;
    hello_.protocol_max = kProtocolMax;
    hello_.build = kBuildVersion;
    hello_.name = "mallory";
    hello_.cores = 1;
    hello_.memory_bytes = std::uint64_t{1} << 36;
    hello_.simd = "avx512";
    hello_.speed = speed;
    hello_.process = random_bits() >> 1;
    if (master_->secure) hello_.invite = to_text(master_->secure->invite);
  }

  [[nodiscard]] tcp::socket& socket() { return socket_; }

  [[nodiscard]] Hello& hello() { return hello_; }

  asio::awaitable<bool> connect() {
    asio::error_code error;
    socket_.open(tcp::v4(), error);
    socket_.bind(from_, error);
    const tcp::endpoint target(asio::ip::make_address(master_->where.host), master_->where.port);
    const WaitOutcome connected = co_await socket_.async_connect(target, kAsTuple);
    co_return !std::get<0>(connected);
  }

  // Connects, encrypts, and says Hello.
  asio::awaitable<bool> say_hello() {
    const bool is_connected = co_await connect();
    if (!is_connected) co_return false;
    key_.emplace(KeyPair::make());
    tls_.emplace(*key_);
    peer_.expected = master_->secure->key;
    stream_.emplace(socket_, tls_->native());
    watch_peer_key(stream_->native_handle(), peer_);
    const WaitOutcome encrypted =
        co_await stream_->async_handshake(asio::ssl::stream_base::client, kAsTuple);
    if (std::get<0>(encrypted)) co_return false;
    const Message hello(hello_);
    const bool is_sent = co_await send(hello);
    co_return is_sent;
  }

  // As say_hello(), and waits for the Welcome.
  asio::awaitable<bool> join() {
    const bool is_said = co_await say_hello();
    if (!is_said) co_return false;
    const std::optional<Message> answer = co_await read();
    if (!answer || !std::holds_alternative<Welcome>(*answer)) co_return false;
    ++attack_.joined;
    co_return true;
  }

  asio::awaitable<bool> write(const Bytes& bytes) {
    const auto buffer = asio::buffer(bytes);
    const TransferOutcome sent = co_await asio::async_write(*stream_, buffer, kAsTuple);
    co_return !std::get<0>(sent);
  }

  asio::awaitable<bool> send(const Message& message) {
    const Bytes frame = framed(message);
    const bool is_sent = co_await write(frame);
    co_return is_sent;
  }

  asio::awaitable<std::optional<Message>> read() {
    std::array<std::uint8_t, kFrameHeaderBytes> begin{};
    const auto begin_buffer = asio::buffer(begin);
    const TransferOutcome got = co_await asio::async_read(*stream_, begin_buffer, kAsTuple);
    if (std::get<0>(got)) co_return std::nullopt;
    const Result<FrameHeader> header = parse_frame_header(begin);
    if (!header) co_return std::nullopt;
    Bytes payload(header->payload_bytes);
    const auto buffer = asio::buffer(payload);
    const TransferOutcome rest = co_await asio::async_read(*stream_, buffer, kAsTuple);
    if (std::get<0>(rest)) co_return std::nullopt;
    Result<Message> message = decode(payload);
    if (!message) co_return std::nullopt;
    co_return std::move(*message);
  }

  asio::awaitable<void> pause(Millis time) {
    timer_.expires_after(time);
    const WaitOutcome waited = co_await timer_.async_wait(kAsTuple);
    static_cast<void>(waited);
  }

  static Bytes framed(const Message& message) {
    const Bytes payload = encode(message);
    const auto header = frame_header(payload);
    Bytes frame(header.size() + payload.size());
    std::copy(header.begin(), header.end(), frame.begin());
    std::copy(payload.begin(), payload.end(), frame.begin() + kFrameHeaderBytes);
    return frame;
  }

 private:
  Attack& attack_;
  const MasterAddress* master_;
  tcp::endpoint from_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::optional<KeyPair> key_;
  std::optional<TlsContext> tls_;
  PeerKey peer_;
  std::optional<asio::ssl::stream<tcp::socket&>> stream_;
  Hello hello_;
};

// ---- Kinds of attacks --------------------------------------------------------------------------

// Joins, and goes a tenth of a second later.
asio::awaitable<void> churn(Attack* attack) {
  Session session(*attack, 1e6F);
  const bool is_in = co_await session.join();
  if (is_in) co_await session.pause(Millis(100));
}

// Is there, says so, and is too slow to be given work.
asio::awaitable<void> idle(Attack* attack) {
  while (true) {
    Session session(*attack, 1e-12F);
    bool is_in = co_await session.join();
    const Message heartbeat(Heartbeat{});
    while (is_in) {
      co_await session.pause(Millis(4000));
      is_in = co_await session.send(heartbeat);
    }
    co_await session.pause(Millis(1000));
  }
}

// The first message of a TLS client.
Bytes client_hello() {
  TlsContext tls(KeyPair::make());
  SSL* const connection = SSL_new(tls.native().native_handle());
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(connection, BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(connection);
  SSL_do_handshake(connection);
  Bytes said(4096);
  said.resize(static_cast<std::size_t>(BIO_read(out, said.data(), 4096)));
  SSL_free(connection);
  return said;
}

// Three begin a handshake and never finish it; the fourth does, and has a wrong invite.
asio::awaitable<void> handshake(Attack* attack) {
  static const Bytes said = client_hello();
  Session session(*attack, 1);
  if (attack->come % 4 == 0) {
    session.hello().invite.back() = session.hello().invite.back() == 'a' ? 'b' : 'a';
    const bool is_said = co_await session.say_hello();
    if (!is_said) co_return;
    const std::optional<Message> refusal = co_await session.read();
    static_cast<void>(refusal);
    co_return;
  }
  const bool is_connected = co_await session.connect();
  if (!is_connected) co_return;
  const auto buffer = asio::buffer(said);
  const TransferOutcome sent = co_await asio::async_write(session.socket(), buffer, kAsTuple);
  if (!std::get<0>(sent)) co_await session.pause(Millis(2000));
}

// Takes what it is lent, and answers nothing. `is_ready`: it says that it has loaded the shards.
asio::awaitable<void> take(Session* session, bool is_ready) {
  Instant said = monotonic_now();
  bool is_in = true;
  while (is_in) {
    const std::optional<Message> message = co_await session->read();
    if (!message) co_return;
    const auto* grant = std::get_if<LeaseGrant>(&*message);
    Bytes answer;
    if (grant != nullptr && is_ready) answer = Session::framed(Message(ShardReady{grant->lease}));
    if (answer.empty() && monotonic_now() - said > Millis(1000)) {
      said = monotonic_now();
      answer = Session::framed(Message(Heartbeat{}));
    }
    if (!answer.empty()) is_in = co_await session->write(answer);
  }
}

// A heartbeat, again and again, a byte at a time.
asio::awaitable<void> trickle(Session* session) {
  const Bytes heartbeat = Session::framed(Message(Heartbeat{}));
  bool is_in = true;
  for (std::size_t i = 0; is_in; i = (i + 1) % heartbeat.size()) {
    const Bytes byte(1, heartbeat[i]);
    is_in = co_await session->write(byte);
    co_await session->pause(Millis(50));
  }
}

// Says that it is infinitely fast, and comes again at once when it is sent away.
asio::awaitable<void> hoard(Attack* attack) {
  while (true) {
    const auto session = std::make_unique<Session>(*attack, 1e30F);
    const bool is_in = co_await session->join();
    if (is_in && attack->kind == "drip") {
      co_await trickle(session.get());
    } else if (is_in) {
      co_await take(session.get(), attack->kind == "greedy");
    }
    co_await session->pause(Millis(500));
  }
}

// Sends all of a large frame but its last byte.
asio::awaitable<void> unfinished(Attack* attack) {
  Session session(*attack, 1e-12F);
  bool is_in = co_await session.join();
  Bytes begin(kFrameHeaderBytes);
  for (std::size_t i = 0; i < 4; ++i)
    begin[i] = static_cast<std::uint8_t>(kUnfinishedBytes >> 8 * i);
  if (is_in) is_in = co_await session.write(begin);
  const Bytes piece(64 * 1024);
  for (std::size_t sent = piece.size(); is_in && sent < kUnfinishedBytes; sent += piece.size()) {
    is_in = co_await session.write(piece);
  }
  while (true) co_await session.pause(Millis(60'000));
}

struct Kind {
  asio::awaitable<void> (*run)(Attack*);
  bool is_per_second = false;  // COUNT are begun each second, and not in all
};

const std::map<std::string, Kind> kKinds = {
    {"churn", {churn, true}},    {"idle", {idle}},   {"handshakes", {handshake, true}},
    {"greedy", {hoard}},         {"taker", {hoard}}, {"drip", {hoard}},
    {"unfinished", {unfinished}}};

// Begins all within a few seconds, as fast as handshakes are let through, or some each second for
// ever.
asio::awaitable<void> begin(Attack* attack, Kind kind, int count) {
  constexpr int kTicksPerSecond = 20;
  constexpr int kTogetherPerSecond = 200;
  const auto ignore = [](const std::exception_ptr&) {};
  const double per_tick = 1.0 * (kind.is_per_second ? count : kTogetherPerSecond) / kTicksPerSecond;
  asio::steady_timer timer(attack->io, std::chrono::seconds(0));
  double due = 0;
  int begun = 0;
  for (int tick = 0;; ++tick) {
    for (due += per_tick; due >= 1 && (kind.is_per_second || begun < count); --due, ++begun) {
      asio::co_spawn(attack->io, kind.run(attack), ignore);
    }
    if (tick % kTicksPerSecond == 0) {
      std::printf("%llu begun, %llu welcomed\n", static_cast<unsigned long long>(attack->come),
                  static_cast<unsigned long long>(attack->joined));
      std::fflush(stdout);
    }
    timer.expires_at(timer.expiry() + std::chrono::milliseconds(1000 / kTicksPerSecond));
    const WaitOutcome waited = co_await timer.async_wait(kAsTuple);
    static_cast<void>(waited);
  }
}

int run(const std::string& kind, int count, const std::vector<std::string>& lines) {
  Attack attack;
  attack.kind = kind;
  for (const std::string& line : lines) {
    const Result<MasterAddress> address = parse_master_address(line);
    if (!address || !address->secure) return 2;
    attack.masters.push_back(*address);
  }
  os::raise_descriptor_limit();
  const auto ignore = [](const std::exception_ptr&) {};
  asio::co_spawn(attack.io, begin(&attack, kKinds.at(kind), count), ignore);
  attack.io.run();
  return 0;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  if (argc < 4 || !gleaner::kKinds.contains(argv[1]) || std::atoi(argv[2]) < 1) {
    std::fprintf(stderr, "usage: gleaner-attacker KIND COUNT LINE...\nkinds:");
    for (const auto& [name, kind] : gleaner::kKinds) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  return gleaner::run(argv[1], std::atoi(argv[2]), {argv + 3, argv + argc});
}
