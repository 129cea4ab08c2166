#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <string>

#include "common/net/frame.hpp"
#include "common/net/task_group.hpp"
#include "common/net/tcp_link.hpp"

namespace gleaner {
namespace {

class MemoryLink : public Link, public std::enable_shared_from_this<MemoryLink> {
 public:
  explicit MemoryLink(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void join(const std::shared_ptr<MemoryLink>& peer) { peer_ = peer; }

  void start(Handler handler) override { handler_ = std::move(handler); }

  // No frame waits, so none can be overtaken.
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

  // The peer has every message at once.
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
  // Delivers at most `payloads` payloads, the oldest first.
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
