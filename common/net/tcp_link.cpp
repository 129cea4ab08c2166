#include "common/net/tcp_link.hpp"

#include <utility>

namespace gleaner {
namespace {

class TcpLink : public Link, public std::enable_shared_from_this<TcpLink> {
 public:
  TcpLink(asio::ip::tcp::socket socket, const FramedSocketLimits& limits, Millis silence_max,
          TaskGroup& tasks)
      : socket_(std::move(socket), limits), silence_max_(silence_max), tasks_(tasks) {}

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

}  // namespace

std::shared_ptr<Link> make_tcp_link(asio::ip::tcp::socket socket, const FramedSocketLimits& limits,
                                    Millis silence_max, TaskGroup& tasks) {
  return std::make_shared<TcpLink>(std::move(socket), limits, silence_max, tasks);
}

}  // namespace gleaner
