// The entrance of volunteers and tools: the port, encryption, the lobby for connections that have
// not introduced themselves, and the gate that decides their standing. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/console/log.hpp"
#include "common/net/lobby.hpp"
#include "common/net/task_group.hpp"
#include "common/net/tcp_link.hpp"
#include "common/net/tls_context.hpp"
#include "master/config/config.hpp"
#include "master/door/gate.hpp"
#include "master/see/console.hpp"
#include "master/see/page_view.hpp"

namespace gleaner {

// Limits of connections from the master's configuration; the key is missing.
TcpLinkOptions link_options(const MasterConfig& config);
LobbyLimits lobby_limits(const MasterConfig& config);

class Entrance {
 public:
  struct Observer {
    std::function<void(Arrival)> on_arrival;
    Gate::Observer gate;
  };

  // All of it outlives the entrance. `store` leads to the folder of the keys.
  Entrance(asio::io_context& io, TaskGroup& tasks, MasterConfig& config, std::string store,
           Console& console);

  // Listens at network.listen, and stores the port in use there. If network.listen is empty, a free
  // port of this machine alone takes questions, encrypted; no port on a machine without loopback.
  Result<void> open(Observer observer);
  // Says where it listens and with which line others join, if network.listen is set. Requires
  // is_open().
  Result<void> announce();
  void close();

  [[nodiscard]] bool is_open() const { return acceptor_.has_value(); }

  // Null if the entrance is not open or does not encrypt.
  [[nodiscard]] const KeyPair* key() const { return is_open() ? gate_->key() : nullptr; }

  // Requires is_open().
  [[nodiscard]] Gate& gate() { return *gate_; }

  // The banned keys; none if the entrance is closed.
  [[nodiscard]] std::vector<BanShown> bans() const;

  // HOST:PORT at which it listens. Requires is_open().
  [[nodiscard]] std::string address() const;

  // HOST:PORT in join lines. Empty before open(), and without network.listen.
  [[nodiscard]] const std::string& where() const { return where_; }

  // Bans a volunteer whose answers were false, and logs the suspension of its invite. Requires
  // is_open().
  void keep_out(const KeyId& key, InviteId invite, const std::string& name,
                const std::string& what);

  // Logs a sentence about a connection, at a limited rate: strangers decide how often it happens.
  // `text` begins with ADDRESS:PORT if it is about a peer; the port changes with every attempt.
  void warn_of_stranger(const std::string& text);

 private:
  Result<void> open_gate(Gate::Observer observer);

  asio::io_context& io_;
  TaskGroup& tasks_;
  MasterConfig& config_;
  const std::string store_;
  Console& console_;
  std::optional<asio::ip::tcp::acceptor> acceptor_;
  std::string where_;
  std::unique_ptr<Gate> gate_;
  std::optional<TlsContext> tls_;  // set if it encrypts; outlives the links
  std::optional<Lobby> lobby_;
  LogThrottle stranger_log_;
};

}  // namespace gleaner
