#include "common/net/lobby.hpp"

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "common/net/tls_context.hpp"

namespace gleaner {
namespace {

// When the process has no descriptors left, accepting fails again and again at once.
constexpr std::chrono::milliseconds kAcceptPause{100};

std::string network_of_peer(const asio::ip::tcp::socket& socket) {
  asio::error_code error;
  const asio::ip::tcp::endpoint endpoint = socket.remote_endpoint(error);
  return error ? "unknown" : network_of(endpoint.address().to_string());
}

// At least 1 ms, in which bytes that have arrived can still be read.
Millis time_left(Instant deadline) {
  return std::max(Millis(1), std::chrono::ceil<Millis>(deadline - monotonic_now()));
}

}  // namespace

Lobby::Lobby(TaskGroup& tasks, asio::ip::tcp::acceptor& acceptor,
             const TcpLinkOptions& link_options, const LobbyLimits& limits, Observer observer)
    : tasks_(tasks),
      acceptor_(acceptor),
      link_options_(link_options),
      limits_(limits),
      observer_(std::move(observer)),
      handshakes_(limits.handshakes, limits.handshakes_per_address) {}

void Lobby::start() {
  tasks_.spawn("accept", accept(this));
}

void Lobby::stop() {
  is_stopped_ = true;
  asio::error_code ignored;
  acceptor_.close(ignored);
  for (const Newcomer& newcomer : waiting_) newcomer.socket->close("stopped");
  waiting_.clear();
}

asio::awaitable<void> Lobby::accept(Lobby* self) {
  while (!self->is_stopped_) {
    asio::ip::tcp::socket socket(self->acceptor_.get_executor());
    const WaitOutcome accepted = co_await self->acceptor_.async_accept(socket, kAsTuple);
    const asio::error_code error = std::get<0>(accepted);
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    if (!error) {
      self->receive(std::move(socket));
      continue;
    }
    self->observer_.on_turned_away("", "cannot accept connections: " + error.message());
    if (!self->waiting_.empty()) {
      self->turn_away(self->waiting_.begin(), "its place is needed for others");
    }
    asio::steady_timer pause(self->acceptor_.get_executor(), kAcceptPause);
    const WaitOutcome paused = co_await pause.async_wait(kAsTuple);
    if (std::get<0>(paused)) co_return;
  }
}

void Lobby::receive(asio::ip::tcp::socket socket) {
  const std::string address = network_of_peer(socket);
  make_room_for(address);
  auto framed = std::make_shared<FramedSocket>(std::move(socket), link_options_.limits);
  waiting_.push_back({address, framed});
  tasks_.spawn("introduce " + framed->peer(), introduce(this, address, framed));
}

void Lobby::make_room_for(const std::string& address) {
  const auto is_same = [&](const Newcomer& newcomer) { return newcomer.address == address; };
  const auto same = std::count_if(waiting_.begin(), waiting_.end(), is_same);
  if (static_cast<std::size_t>(same) >= limits_.waiting_per_address_max) {
    turn_away(std::find_if(waiting_.begin(), waiting_.end(), is_same),
              "too many connections of its address are silent");
  } else if (waiting_.size() >= limits_.waiting_max) {
    turn_away(waiting_.begin(), "too many connections are silent");
  }
}

void Lobby::turn_away(std::list<Newcomer>::iterator newcomer, const std::string& reason) {
  const std::shared_ptr<FramedSocket> socket = std::move(newcomer->socket);
  waiting_.erase(newcomer);
  socket->close(reason);  // introduce() reports it
}

void Lobby::forget(const std::shared_ptr<FramedSocket>& socket) {
  waiting_.remove_if([&](const Newcomer& newcomer) { return newcomer.socket == socket; });
}

// The other side's key, if this side encrypts.
asio::awaitable<Result<std::optional<KeyId>>> Lobby::secure(Lobby* self, std::string address,
                                                            std::shared_ptr<FramedSocket> socket,
                                                            Instant deadline) {
  if (self->link_options_.tls == nullptr) co_return std::optional<KeyId>();
  const Result<std::uint8_t> first = co_await socket->first_byte(time_left(deadline));
  if (!first) co_return first.error();
  if (*first != kTlsHandshakeByte) co_return socket->refuse_plain_text();
  if (!self->handshakes_.spend(address, monotonic_now())) {
    const std::string reason = "too many handshakes";
    socket->close(reason);
    co_return Error{ErrorCode::kBusy, reason};
  }
  const Result<KeyId> key =
      co_await socket->encrypt_as_server(*self->link_options_.tls, time_left(deadline));
  if (!key) co_return key.error();
  co_return std::optional(*key);
}

asio::awaitable<void> Lobby::introduce(Lobby* self, std::string address,
                                       std::shared_ptr<FramedSocket> socket) {
  const Instant deadline = monotonic_now() + self->limits_.introduction_time_max;
  Result<Bytes> frame = Bytes();
  const Result<std::optional<KeyId>> key = co_await secure(self, address, socket, deadline);
  if (key) {
    frame = co_await socket->read_frame(time_left(deadline), self->limits_.introduction_bytes_max,
                                        FrameDeadline::kWhole);
  } else {
    frame = key.error();
  }
  if (self->is_stopped_) co_return;
  self->forget(socket);
  if (!frame) {
    self->observer_.on_turned_away(socket->peer(), frame.error().message);
    co_return;
  }
  std::string peer = socket->peer();
  self->observer_.on_introduced(
      {make_tcp_link(std::move(socket), std::move(*frame), self->link_options_, self->tasks_),
       std::move(peer), *key});
}

}  // namespace gleaner
