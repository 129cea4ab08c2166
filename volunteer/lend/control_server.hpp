// The volunteer's end of the control socket: a line of JSON in, a line of JSON out. Only the same
// user and root get an answer: file permissions (0600 in a folder 0700) and a check of the peer's
// user enforce this. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/result.hpp"

namespace gleaner::volunteer {

class ControlServer {
 public:
  // Maps the line of a request to the line of its answer, both without newline.
  using Answer = std::function<std::string(const std::string& request)>;

  // Replaces a socket that a dead process left behind. An error when a live process answers on it.
  static Result<std::unique_ptr<ControlServer>> listen(asio::io_context& io, std::string path,
                                                       Answer answer);
  // Removes the socket.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  [[nodiscard]] const std::string& path() const;

 private:
  struct Impl;

  explicit ControlServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner::volunteer
