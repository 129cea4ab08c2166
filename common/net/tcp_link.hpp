// A link over TCP, and the two ways to get one: dialling and accepting.
#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/host_port.hpp"
#include "common/net/framed_socket.hpp"
#include "common/net/link.hpp"
#include "common/net/task_group.hpp"
#include "common/result.hpp"

namespace gleaner {

struct TcpLinkOptions {
  FramedSocketLimits limits;
  Millis silence_max{60'000};  // a link on which nothing arrives for so long closes
};

// `socket` is connected; its reader runs in `tasks`, which outlives the link.
std::shared_ptr<Link> make_tcp_link(asio::ip::tcp::socket socket, const TcpLinkOptions& options,
                                    TaskGroup& tasks);

// Connects in `tasks` and calls back, once, not from within this call. `tasks` outlives the
// attempt.
void dial_tcp(TaskGroup& tasks, const HostPort& target, Millis time_max,
              const TcpLinkOptions& options,
              std::function<void(Result<std::shared_ptr<Link>>)> on_dialled);

// Accepts connections in `tasks` until it is cancelled, one link each. `acceptor` and `tasks`
// outlive the task.
void accept_tcp(TaskGroup& tasks, asio::ip::tcp::acceptor& acceptor, const TcpLinkOptions& options,
                std::function<void(std::shared_ptr<Link>, std::string peer)> on_accepted);

}  // namespace gleaner
