#include "common/net/transports.hpp"

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "common/net/connect.hpp"
#include "common/net/frame.hpp"
#include "common/net/task_group.hpp"

namespace gleaner {
namespace {

// How soon an owner who does not listen learns that the connection has ended.
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
    socket_->send(std::move(payload), lane);  // a failure ends the reader, which reports it
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
  // Holds the link, so that it lives until its reader has ended.
  static asio::awaitable<void> read(std::shared_ptr<TcpLink> self) {
    while (true) {
      // Where nothing can be sent any more, the peer's last words come before the end.
      while (!self->is_listening_ && self->socket_->takes_frames()) {
        self->listening_again_.expires_after(kListeningPause);
        const WaitOutcome waited = co_await self->listening_again_.async_wait(kAsTuple);
        const bool is_woken = static_cast<bool>(std::get<0>(waited));
        if (is_woken) break;  // it listens again, or the task is to end
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
        // The socket has closed, or has something left to send and closes by itself: whoever is
        // refused while it sends must hear why.
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

asio::awaitable<void> dial(TaskGroup* tasks, HostPort target, Millis time_max,
                           TcpLinkOptions options,
                           std::function<void(Result<std::shared_ptr<Link>>)> on_dialled) {
  Result<std::shared_ptr<FramedSocket>> socket = co_await connect_framed(target, time_max, options);
  if (socket) {
    std::shared_ptr<Link> link =
        std::make_shared<TcpLink>(std::move(*socket), std::nullopt, options, *tasks);
    on_dialled(std::move(link));
  } else {
    on_dialled(socket.error());
  }
}

}  // namespace

std::shared_ptr<Link> make_tcp_link(asio::ip::tcp::socket socket, const TcpLinkOptions& options,
                                    TaskGroup& tasks) {
  auto framed = std::make_shared<FramedSocket>(std::move(socket), options.limits);
  return std::make_shared<TcpLink>(std::move(framed), std::nullopt, options, tasks);
}

std::shared_ptr<Link> make_tcp_link(std::shared_ptr<FramedSocket> socket, Bytes first,
                                    const TcpLinkOptions& options, TaskGroup& tasks) {
  return std::make_shared<TcpLink>(std::move(socket), std::move(first), options, tasks);
}

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

namespace {

class MemoryLink : public Link, public std::enable_shared_from_this<MemoryLink> {
 public:
  explicit MemoryLink(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void join(const std::shared_ptr<MemoryLink>& peer) { peer_ = peer; }

  void start(Handler handler) override { handler_ = std::move(handler); }

  // Nothing waits, so nothing is overtaken.
  std::size_t send(Bytes payload, Lane /*lane*/) override {
    const std::size_t wire_bytes = payload.size() + kFrameHeaderBytes;
    if (is_closed_) return wire_bytes;
    if (const auto peer = peer_.lock()) {
      asio::post(peer->executor_, [peer, payload = std::move(payload)]() mutable {
        peer->unheard_.push_back(std::move(payload));
        peer->deliver(1);
      });
    }
    return wire_bytes;
  }

  // Messages are the peer's at once.
  [[nodiscard]] std::size_t bytes_waiting() const override { return 0; }

  void set_listening(bool is_on) override {
    if (is_on == std::exchange(is_listening_, is_on) || !is_on || unheard_.empty()) return;
    asio::post(executor_, [self = shared_from_this()] { self->deliver(self->unheard_.size()); });
  }

  void close() override {
    if (std::exchange(is_closed_, true)) return;
    const std::string reason = "closed";
    if (const auto peer = peer_.lock()) post_closed(peer, reason);
    post_closed(shared_from_this(), reason);
  }

  void abandon() override {
    handler_ = {};
    close();
  }

 private:
  // Hands out at most `payloads` payloads, the oldest first.
  void deliver(std::size_t payloads) {
    for (; payloads > 0 && is_listening_ && !unheard_.empty(); --payloads) {
      const Bytes payload = std::move(unheard_.front());
      unheard_.pop_front();
      const auto on_frame = handler_.on_frame;  // a copy: it may abandon the link
      if (on_frame) on_frame(payload, payload.size() + kFrameHeaderBytes);
    }
  }

  static void post_closed(const std::shared_ptr<MemoryLink>& end, const std::string& reason) {
    asio::post(end->executor_, [end, reason] {
      end->is_closed_ = true;
      end->is_listening_ = true;
      end->deliver(end->unheard_.size());
      const Handler handler = std::exchange(end->handler_, {});
      if (handler.on_closed) handler.on_closed(reason);
    });
  }

  asio::any_io_executor executor_;
  std::weak_ptr<MemoryLink> peer_;
  Handler handler_;
  std::deque<Bytes> unheard_;
  bool is_listening_ = true;
  bool is_closed_ = false;
};

}  // namespace

LinkPair make_memory_links(asio::any_io_executor first, asio::any_io_executor second) {
  auto a = std::make_shared<MemoryLink>(std::move(first));
  auto b = std::make_shared<MemoryLink>(std::move(second));
  a->join(b);
  b->join(a);
  return {a, b};
}

}  // namespace gleaner
