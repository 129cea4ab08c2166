// Limits and addresses of connections, from the master's configuration.
#pragma once

#include <asio/ip/tcp.hpp>

#include "common/host_port.hpp"
#include "common/net/lobby.hpp"
#include "common/net/tcp_link.hpp"
#include "master/config/config.hpp"

namespace gleaner {

// Without the key to encrypt with.
TcpLinkOptions link_options(const MasterConfig& config);
LobbyLimits lobby_limits(const MasterConfig& config);

// Where others reach what listens at `local`: by this machine's name if that is all of its
// addresses.
HostPort announced_address(const asio::ip::tcp::endpoint& local);

}  // namespace gleaner
