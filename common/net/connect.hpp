// Connections out and in. Errors name the address and, where there is one, the remedy.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <string>

#include "common/host_port.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace gleaner {

// Resolves the name and tries its addresses in turn; `time_max` bounds all of it. Runs on the
// calling coroutine's executor, one thread.
asio::awaitable<Result<asio::ip::tcp::socket>> resolve_and_connect(HostPort target,
                                                                   Millis time_max);

// Listens on the first address that `address` resolves to; port 0 lets the system choose one.
// Blocks while it resolves: for start-up. kBusy when the port is taken.
Result<asio::ip::tcp::acceptor> listen(const asio::any_io_executor& executor,
                                       const HostPort& address);

// ADDRESS:PORT; "unknown" when the connection is gone already.
std::string remote_text(const asio::ip::tcp::socket& socket);
std::string to_text(const asio::ip::tcp::endpoint& endpoint);

}  // namespace gleaner
