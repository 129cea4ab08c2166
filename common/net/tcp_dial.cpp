// How to get a link over TCP by dialling.
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/net/connect.hpp"
#include "common/net/tcp_link.hpp"

namespace gleaner {
namespace {

asio::awaitable<void> dial(TaskGroup* tasks, HostPort target, Millis time_max,
                           TcpLinkOptions options,
                           std::function<void(Result<std::shared_ptr<Link>>)> on_dialled) {
  Result<std::shared_ptr<FramedSocket>> socket = co_await connect_framed(target, time_max, options);
  if (socket) {
    on_dialled(make_tcp_link(std::move(*socket), std::nullopt, options, *tasks));
  } else {
    on_dialled(socket.error());
  }
}

asio::awaitable<void> converse(HostPort target, Millis time_max, Millis answer_max,
                               TcpLinkOptions options, Bytes question, Result<Bytes>* answer) {
  Result<std::shared_ptr<FramedSocket>> socket = co_await connect_framed(target, time_max, options);
  if (!socket) {
    *answer = socket.error();
    co_return;
  }
  (*socket)->send(std::move(question));
  Result<Bytes> frame = co_await (*socket)->read_frame(answer_max);
  *answer = std::move(frame);
}

}  // namespace

asio::awaitable<Result<std::shared_ptr<FramedSocket>>> connect_framed(HostPort target,
                                                                      Millis time_max,
                                                                      TcpLinkOptions options) {
  Result<asio::ip::tcp::socket> socket = co_await resolve_and_connect(target, time_max);
  if (!socket) co_return socket.error();
  auto framed = std::make_shared<FramedSocket>(std::move(*socket), options.limits);
  if (options.tls != nullptr) {
    const Result<KeyId> peer =
        co_await framed->encrypt_as_client(*options.tls, options.master, time_max);
    if (!peer) co_return peer.error();
  }
  co_return framed;
}

void dial_tcp(TaskGroup& tasks, const HostPort& target, Millis time_max,
              const TcpLinkOptions& options,
              std::function<void(Result<std::shared_ptr<Link>>)> on_dialled) {
  tasks.spawn("dial", dial(&tasks, target, time_max, options, std::move(on_dialled)));
}

Result<void> reach_tcp(const HostPort& target, Millis time_max, const TcpLinkOptions& options) {
  asio::io_context io(1);
  Result<void> reached = Error{ErrorCode::kIo, "the attempt ended without a result"};
  TaskGroup tasks(io.get_executor(), [&](const std::string& task, const std::string& what) {
    reached = Error{ErrorCode::kIo, task + ": " + what};
  });
  dial_tcp(tasks, target, time_max, options, [&](Result<std::shared_ptr<Link>> dialled) {
    reached = dialled ? Result<void>() : Result<void>(dialled.error());
  });
  io.run();
  return reached;
}

Result<Bytes> ask_tcp(const HostPort& target, Millis time_max, Millis answer_max,
                      const TcpLinkOptions& options, Bytes question) {
  asio::io_context io(1);
  Result<Bytes> answer = Error{ErrorCode::kIo, "no answer"};
  std::optional<std::string> broken;
  TaskGroup tasks(io.get_executor(),
                  [&](const std::string&, const std::string& what) { broken = what; });
  tasks.spawn("ask", converse(target, time_max, answer_max, options, std::move(question), &answer));
  io.run();
  if (broken) return Error{ErrorCode::kIo, *broken};
  return answer;
}

}  // namespace gleaner
