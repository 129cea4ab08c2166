// Outgoing and incoming connections. Errors name the address and, if possible, the remedy.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <string>

#include "common/host_port.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace gleaner {

// Resolves the name and connects to the first of its addresses that answers, within `time_max` in
// total: attempts overlap, so that a silent address costs a quarter of a second. Runs on the
// calling coroutine's executor, one thread.
asio::awaitable<Result<asio::ip::tcp::socket>> resolve_and_connect(HostPort target,
                                                                   Millis time_max);

// Listens on the first address of `address`; for port 0 the system chooses a port. Blocks while it
// resolves: for start-up. kBusy when the port is taken.
Result<asio::ip::tcp::acceptor> listen(const asio::any_io_executor& executor,
                                       const HostPort& address);

// ADDRESS:PORT; "unknown" for a lost connection.
std::string remote_text(const asio::ip::tcp::socket& socket);
std::string to_text(const asio::ip::tcp::endpoint& endpoint);

}  // namespace gleaner
