// Connections wait here until they have introduced themselves. A new connection has little time and
// few bytes for one frame, its introduction; before that, no other part learns of it. So
// connections that are silent, trickle, or speak another protocol only cost a descriptor for a
// while.  Invariants: at most `waiting_max` connections wait, and at most `waiting_per_address_max`
// of one address. Beyond that the longest-waiting connection is closed, since an honest peer
// introduces itself at once. Handshake and introduction together must arrive within
// `introduction_time_max`. Handshakes, which cost arithmetic, begin at most as often as
// `handshakes` allows, and only after the peer has begun one. I/O thread only. trickle. Handshakes,
// which take arithmetic, begin at most as often as `handshakes` says, and only for who has begun
// one. I/O thread only.
#pragma once

#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "common/limits.hpp"
#include "common/net/framed_socket.hpp"
#include "common/net/shell_interfaces.hpp"
#include "common/net/task_group.hpp"
#include "common/net/tcp_link.hpp"
#include "common/rates.hpp"
#include "common/time.hpp"

namespace gleaner {

struct LobbyLimits {
  Millis introduction_time_max{10'000};
  std::size_t introduction_bytes_max = kIntroductionBytesMax;
  std::size_t waiting_max = 256;
  std::size_t waiting_per_address_max = 32;
  RateBudget::Rate handshakes{512, 256};  // at once, and per second
  RateBudget::Rate handshakes_per_address{64, 32};
};

class Lobby {
 public:
  struct Observer {
    std::function<void(Arrival)> on_introduced;
    // `peer` is ADDRESS:PORT, or empty when accepting failed and will be tried again.
    std::function<void(std::string peer, std::string reason)> on_turned_away;
  };

  // All arguments outlive the lobby; `acceptor` listens.
  Lobby(TaskGroup& tasks, asio::ip::tcp::acceptor& acceptor, const TcpLinkOptions& link_options,
        const LobbyLimits& limits, Observer observer);
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  void start();
  // Closes the acceptor and all waiting connections. The observer is not called any more.
  void stop();

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Newcomer {
    std::string address;
    std::shared_ptr<FramedSocket> socket;
  };

  static asio::awaitable<void> accept(Lobby* self);
  static asio::awaitable<void> introduce(Lobby* self, std::string address,
                                         std::shared_ptr<FramedSocket> socket);
  static asio::awaitable<Result<std::optional<KeyId>>> secure(Lobby* self, std::string address,
                                                              std::shared_ptr<FramedSocket> socket,
                                                              Instant deadline);
  void receive(asio::ip::tcp::socket socket);
  void make_room_for(const std::string& address);
  void turn_away(std::list<Newcomer>::iterator newcomer, const std::string& reason);
  void forget(const std::shared_ptr<FramedSocket>& socket);

  TaskGroup& tasks_;
  asio::ip::tcp::acceptor& acceptor_;
  const TcpLinkOptions link_options_;
  const LobbyLimits limits_;
  Observer observer_;
  RateBudget handshakes_;
  std::list<Newcomer> waiting_;  // in the order of arrival
  bool is_stopped_ = false;
};

}  // namespace gleaner
