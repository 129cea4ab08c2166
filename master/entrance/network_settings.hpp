// Limits of connections, from the master's configuration.
#pragma once

#include "common/net/lobby.hpp"
#include "common/net/tcp_link.hpp"
#include "master/config/config.hpp"

namespace gleaner {

// Without the key to encrypt with.
TcpLinkOptions link_options(const MasterConfig& config);
LobbyLimits lobby_limits(const MasterConfig& config);

}  // namespace gleaner
