// A client's connection to the control socket: a line of JSON in, a line of JSON out, until the
// client hangs up or falls silent. `Stream` is a local stream of the operating system. I/O thread
// only.
#pragma once

#include <asio/buffer.hpp>
#include <asio/error_code.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "volunteer/lend/control_server.hpp"

namespace gleaner::volunteer {

inline constexpr std::size_t kControlConnectionsMax = 32;

template <typename Stream>
class ControlConnection : public std::enable_shared_from_this<ControlConnection<Stream>> {
 public:
  using All = std::set<std::shared_ptr<ControlConnection>>;

  // Both references outlive this. The connection is in `all` until it ends.
  ControlConnection(Stream stream, const ControlServer::Answer& answer, All& all)
      : stream_(std::move(stream)), timer_(stream_.get_executor()), answer_(answer), all_(all) {}

  [[nodiscard]] Stream& stream() { return stream_; }

  void start() { read(); }

  // Sends one line and hangs up.
  void refuse(std::string reply) { write(std::move(reply), true); }

  void close() {
    asio::error_code ignored;
    stream_.close(ignored);
    timer_.cancel();
  }

 private:
  static constexpr std::size_t kRequestBytesMax = 4096;
  static constexpr std::chrono::seconds kSilence{30};

  void read() {
    timer_.expires_after(kSilence);
    timer_.async_wait([self = this->weak_from_this()](asio::error_code error) {
      if (const auto connection = self.lock(); connection && !error) connection->end();
    });
    asio::async_read_until(
        stream_, asio::dynamic_buffer(received_, kRequestBytesMax), '\n',
        [self = this->weak_from_this()](asio::error_code error, std::size_t bytes) {
          const auto connection = self.lock();
          if (!connection) return;
          if (error) return connection->end();
          connection->handle(bytes);
        });
  }

  void handle(std::size_t bytes) {
    const std::string request = received_.substr(0, bytes - 1);
    received_.erase(0, bytes);
    write(answer_(request), false);
  }

  void write(std::string reply, bool is_last) {
    reply_ = std::move(reply) + "\n";
    asio::async_write(
        stream_, asio::buffer(reply_),
        [self = this->weak_from_this(), is_last](asio::error_code error, std::size_t) {
          const auto connection = self.lock();
          if (!connection) return;
          if (error || is_last) return connection->end();
          connection->read();
        });
  }

  void end() {
    close();
    all_.erase(this->shared_from_this());
  }

  Stream stream_;
  asio::steady_timer timer_;
  const ControlServer::Answer& answer_;
  All& all_;
  std::string received_;
  std::string reply_;
};

}  // namespace gleaner::volunteer
