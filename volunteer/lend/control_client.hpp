// The client end of the control socket; under Windows a named pipe. Blocks for a few seconds at
// most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gleaner::volunteer {

// Where a volunteer listens: the given path; otherwise in its cache folder, and in a folder of the
// user, where the first volunteer listens for all: that which systemd made for the service, that of
// the session, one in /tmp. Windows: the given path, otherwise a pipe named after the user.
std::vector<std::string> control_paths(const std::string& given, const std::string& cache_folder);

// Where a client asks, first to last: the given path, or in the cache folder, or else in the user's
// folder and at the path of the machine's service.
std::vector<std::string> paths_to_ask(const std::string& given, const std::string& cache_folder);

// A connection for several requests.
class ControlClient {
 public:
  static Result<ControlClient> connect(const std::string& path);
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&& other) noexcept = delete;
  ~ControlClient();

  // Sends a line and returns the line of the answer; both without newline.
  Result<std::string> ask(const std::string& request);

 private:
  explicit ControlClient(std::intptr_t socket) : socket_(socket) {}

  // Return how many bytes moved; 0 when the volunteer has hung up.
  Result<std::size_t> send_some(std::string_view text);
  Result<std::size_t> receive_some(std::span<char> part);

  std::intptr_t socket_ = -1;  // under Windows a handle
};

Result<std::string> ask_volunteer(const std::string& path, const std::string& request);

}  // namespace gleaner::volunteer
