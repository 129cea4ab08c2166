// The volunteer's end of the control socket: a line of JSON in, a line of JSON out. Only the same
// user and root get an answer: the file says so (0600 in a folder 0700), and the kernel's word on
// the peer is checked as well. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
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

  [[nodiscard]] const std::string& path() const;

 private:
  struct Impl;

  explicit ControlServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gleaner::volunteer
