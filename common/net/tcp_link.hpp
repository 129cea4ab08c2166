// A link over TCP, and the two ways to get one: dialling and listening.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/net/framed_socket.hpp"
#include "common/net/frame.hpp"
#include "common/net/link.hpp"
#include "common/net/task_group.hpp"

namespace gleaner {

// `socket` is connected; its reader runs in `tasks`, which outlives the link. The link closes when
// nothing arrives for `silence_max`.
std::shared_ptr<Link> make_tcp_link(asio::ip::tcp::socket socket, const FramedSocketLimits& limits,
                                    Millis silence_max, TaskGroup& tasks);

}  // namespace gleaner
