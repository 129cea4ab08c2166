#include "common/net/tcp_link.hpp"

#include <asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "common/net/connect.hpp"
#include "common/net/frame.hpp"
#include "common/net/tokens.hpp"

namespace gleaner {
namespace {

class TcpLink : public Link, public std::enable_shared_from_this<TcpLink> {
 public:
  TcpLink(asio::ip::tcp::socket socket, const TcpLinkOptions& options, TaskGroup& tasks)
      : socket_(std::move(socket), options.limits),
        silence_max_(options.silence_max),
        tasks_(tasks) {}

  void start(Handler handler) override {
    handler_ = std::move(handler);
    tasks_.spawn("read " + socket_.peer(), read(shared_from_this()));
  }

  std::size_t send(Bytes payload) override {
    const std::size_t wire_bytes = payload.size() + kFrameHeaderBytes;
    socket_.send(std::move(payload));  // a failure ends the reader, which reports it
    return wire_bytes;
  }

  void close() override { socket_.finish("closed"); }

  void abandon() override {
    handler_ = {};
    socket_.close("abandoned");
  }

 private:
  // Holds the link, so that it lives until its reader has ended.
  static asio::awaitable<void> read(std::shared_ptr<TcpLink> self) {
    while (true) {
      Result<Bytes> frame = co_await self->socket_.read_frame(self->silence_max_);
      if (!frame) {
        const Handler handler = std::exchange(self->handler_, {});
        if (handler.on_closed) handler.on_closed(frame.error().message);
        co_return;
      }
      if (!self->handler_.on_frame) co_return;
      const std::size_t wire_bytes = frame->size() + kFrameHeaderBytes;
      // A copy: the handler may abandon the link, which destroys the original while it runs.
      const auto on_frame = self->handler_.on_frame;
      on_frame(std::move(*frame), wire_bytes);
    }
  }

  FramedSocket socket_;
  Millis silence_max_;
  TaskGroup& tasks_;
  Handler handler_;
};

// When the process has no descriptors left, accepting fails at once, again and again.
constexpr std::chrono::milliseconds kAcceptPause{100};

asio::awaitable<void> dial(TaskGroup* tasks, HostPort target, Millis time_max,
                           TcpLinkOptions options,
                           std::function<void(Result<std::shared_ptr<Link>>)> on_dialled) {
  Result<asio::ip::tcp::socket> socket = co_await resolve_and_connect(target, time_max);
  if (socket) {
    on_dialled(make_tcp_link(std::move(*socket), options, *tasks));
  } else {
    on_dialled(socket.error());
  }
}

asio::awaitable<void> accept(TaskGroup* tasks, asio::ip::tcp::acceptor* acceptor,
                             TcpLinkOptions options,
                             std::function<void(std::shared_ptr<Link>, std::string)> on_accepted) {
  while (true) {
    asio::ip::tcp::socket socket(acceptor->get_executor());
    const WaitOutcome accepted = co_await acceptor->async_accept(socket, kAsTuple);
    const asio::error_code error = std::get<0>(accepted);
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    if (error) {
      asio::steady_timer pause(acceptor->get_executor(), kAcceptPause);
      const WaitOutcome paused = co_await pause.async_wait(kAsTuple);
      if (std::get<0>(paused)) co_return;
      continue;
    }
    std::string peer = remote_text(socket);
    on_accepted(make_tcp_link(std::move(socket), options, *tasks), std::move(peer));
  }
}

}  // namespace

std::shared_ptr<Link> make_tcp_link(asio::ip::tcp::socket socket, const TcpLinkOptions& options,
                                    TaskGroup& tasks) {
  return std::make_shared<TcpLink>(std::move(socket), options, tasks);
}

void dial_tcp(TaskGroup& tasks, const HostPort& target, Millis time_max,
              const TcpLinkOptions& options,
              std::function<void(Result<std::shared_ptr<Link>>)> on_dialled) {
  tasks.spawn("dial", dial(&tasks, target, time_max, options, std::move(on_dialled)));
}

void accept_tcp(TaskGroup& tasks, asio::ip::tcp::acceptor& acceptor, const TcpLinkOptions& options,
                std::function<void(std::shared_ptr<Link>, std::string)> on_accepted) {
  tasks.spawn("accept", accept(&tasks, &acceptor, options, std::move(on_accepted)));
}

}  // namespace gleaner
