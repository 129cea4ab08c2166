// A TCP connection whose bytes are plain at first and encrypted from a handshake on. What Asio's
// algorithms need of a stream, and nothing more.
#pragma once

#include <asio/async_result.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/stream.hpp>
#include <memory>
#include <utility>

namespace gleaner {

class Stream {
 public:
  using Tls = asio::ssl::stream<asio::ip::tcp::socket&>;
  using executor_type = asio::ip::tcp::socket::executor_type;

  explicit Stream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }

  asio::ip::tcp::socket& socket() { return socket_; }

  [[nodiscard]] const asio::ip::tcp::socket& socket() const { return socket_; }

  // From here on everything is read and written through it.
  Tls& encrypt(asio::ssl::context& context) {
    tls_ = std::make_unique<Tls>(socket_, context);
    return *tls_;
  }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(asio::error_code, std::size_t)>(
        [this](auto handler, const auto& target) {
          if (tls_) {
            tls_->async_read_some(target, std::move(handler));
          } else {
            socket_.async_read_some(target, std::move(handler));
          }
        },
        token, buffers);
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(asio::error_code, std::size_t)>(
        [this](auto handler, const auto& source) {
          if (tls_) {
            tls_->async_write_some(source, std::move(handler));
          } else {
            socket_.async_write_some(source, std::move(handler));
          }
        },
        token, buffers);
  }

 private:
  asio::ip::tcp::socket socket_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace gleaner
