// Links over TCP and within the process. dial_tcp() connects; common/net/lobby.hpp accepts.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "common/bytes.hpp"
#include "common/host_port.hpp"
#include "common/net/framed_socket.hpp"
#include "common/net/shell_interfaces.hpp"
#include "common/net/task_group.hpp"
#include "common/result.hpp"

namespace gleaner {

struct TcpLinkOptions {
  FramedSocketLimits limits;
  Millis silence_max{60'000};  // a link closes when nothing arrives for this time
  // Encrypts; outlives the links. Null: plain text.
  TlsContext* tls = nullptr;
  KeyId master;  // the key that the dialling side requires with TLS
};

// `socket` is connected. The link's reader runs in `tasks`, which outlives the link.
std::shared_ptr<Link> make_tcp_link(asio::ip::tcp::socket socket, const TcpLinkOptions& options,
                                    TaskGroup& tasks);
// `first`, where there is one, was read from the socket already: the link delivers it first.
std::shared_ptr<Link> make_tcp_link(std::shared_ptr<FramedSocket> socket,
                                    std::optional<Bytes> first, const TcpLinkOptions& options,
                                    TaskGroup& tasks);

// Resolves, connects and, with TLS, encrypts. `time_max` bounds resolving and connecting together,
// and encrypting separately. Errors as in resolve_and_connect() and
// FramedSocket::encrypt_as_client().
asio::awaitable<Result<std::shared_ptr<FramedSocket>>> connect_framed(HostPort target,
                                                                      Millis time_max,
                                                                      TcpLinkOptions options);

// Connects in `tasks` and calls back once, not from within this call. `tasks` outlives the attempt.
void dial_tcp(TaskGroup& tasks, const HostPort& target, Millis time_max,
              const TcpLinkOptions& options,
              std::function<void(Result<std::shared_ptr<Link>>)> on_dialled);

// Connects as dial_tcp() and hangs up. Blocks for at most twice `time_max`: for start-up.
Result<void> reach_tcp(const HostPort& target, Millis time_max, const TcpLinkOptions& options);

// Connects as dial_tcp(), sends a frame and returns the answer, for which it waits `answer_max`.
// Blocks: for tools.
Result<Bytes> ask_tcp(const HostPort& target, Millis time_max, Millis answer_max,
                      const TcpLinkOptions& options, Bytes question);

}  // namespace gleaner
