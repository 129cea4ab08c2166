// The volunteer's end of the control socket: a line of JSON in, a line of JSON out. Only the same
// user and root get an answer: the file says so (0600 in a folder 0700), and the kernel's word on
// the peer is checked as well. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "common/result.hpp"

namespace gleaner::volunteer {

class ControlServer {
 public:
  // From a request's line to its answer's, both without the newline.
  using Answer = std::function<std::string(const std::string& request)>;

  // A socket that a dead process left behind is replaced; one that is answered is an error.
  static Result<std::unique_ptr<ControlServer>> listen(asio::io_context& io, std::string path,
                                                       Answer answer);
  // Removes the socket.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  class Connection;

  ControlServer(asio::io_context& io, std::string path, Answer answer);
  void accept();
  // When the process has no descriptors left, accepting fails at once, again and again.
  void accept_later();

  const std::string path_;
  const Answer answer_;
  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  std::set<std::shared_ptr<Connection>> connections_;
};

}  // namespace gleaner::volunteer
