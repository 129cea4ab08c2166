#include "common/net/tcp_link.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <new>
#include <utility>

#include "common/net/frame.hpp"

namespace gleaner {
namespace {

// An owner that does not listen learns after at most this time that the connection has ended.
constexpr std::chrono::seconds kListeningPause{1};

class TcpLink : public Link, public std::enable_shared_from_this<TcpLink> {
 public:
  TcpLink(std::shared_ptr<FramedSocket> socket, std::optional<Bytes> first,
          const TcpLinkOptions& options, TaskGroup& tasks)
      : socket_(std::move(socket)),
        first_(std::move(first)),
        silence_max_(options.silence_max),
        tasks_(tasks),
        listening_again_(tasks.executor()) {}

  void start(Handler handler) override {
    handler_ = std::move(handler);
    if (handler_.on_sent) {
      socket_->on_written([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        const auto on_sent = self->handler_.on_sent;  // a copy: it may abandon the link
        if (on_sent) on_sent();
      });
    }
    tasks_.spawn("read " + socket_->peer(), read(shared_from_this()));
  }

  std::size_t send(Bytes payload, Lane lane) override {
    const std::size_t wire_bytes = payload.size() + kFrameHeaderBytes;
    socket_->send(std::move(payload), lane);  // the reader ends on failure and reports it
    return wire_bytes;
  }

  [[nodiscard]] std::size_t bytes_waiting() const override { return socket_->bytes_waiting(); }

  void let_wait(std::size_t more_bytes) override { socket_->let_wait(more_bytes); }

  void set_listening(bool is_on) override {
    is_listening_ = is_on;
    if (is_on) listening_again_.cancel();
  }

  void close() override {
    socket_->finish("closed");
    set_listening(true);
  }

  void abandon() override {
    handler_ = {};
    socket_->close("abandoned");
    set_listening(true);
  }

 private:
  // `self` keeps the link alive until its reader has ended.
  static asio::awaitable<void> read(std::shared_ptr<TcpLink> self) {
    while (true) {
      // When nothing can be sent any more, the peer's last messages are delivered before the end.
      while (!self->is_listening_ && self->socket_->takes_frames()) {
        self->listening_again_.expires_after(kListeningPause);
        const WaitOutcome waited = co_await self->listening_again_.async_wait(kAsTuple);
        const bool is_woken = static_cast<bool>(std::get<0>(waited));
        if (is_woken) break;  // it listens again, or the task must end
      }
      Result<Bytes> frame = Bytes();
      if (self->first_) {
        frame = *std::exchange(self->first_, std::nullopt);
      } else {
        try {
          frame = co_await self->socket_->read_frame(self->silence_max_);
        } catch (const std::bad_alloc&) {
          frame = Error{ErrorCode::kResources, "there is no memory for what arrives"};
          self->socket_->close(frame.error().message);
        }
      }
      if (!frame) {
        // The socket has closed, or is finishing and will close by itself: a refused peer must
        // still receive the reason.
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

  std::shared_ptr<FramedSocket> socket_;
  std::optional<Bytes> first_;  // read before the link was made
  Millis silence_max_;
  TaskGroup& tasks_;
  Handler handler_;
  bool is_listening_ = true;
  asio::steady_timer listening_again_;
};

}  // namespace

std::shared_ptr<Link> make_tcp_link(asio::ip::tcp::socket socket, const TcpLinkOptions& options,
                                    TaskGroup& tasks) {
  auto framed = std::make_shared<FramedSocket>(std::move(socket), options.limits);
  return std::make_shared<TcpLink>(std::move(framed), std::nullopt, options, tasks);
}

std::shared_ptr<Link> make_tcp_link(std::shared_ptr<FramedSocket> socket,
                                    std::optional<Bytes> first, const TcpLinkOptions& options,
                                    TaskGroup& tasks) {
  return std::make_shared<TcpLink>(std::move(socket), std::move(first), options, tasks);
}

}  // namespace gleaner
