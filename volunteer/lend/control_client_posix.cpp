#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "volunteer/lend/control_client.hpp"

namespace gleaner::volunteer {
namespace {

constexpr timeval kPatience{5, 0};
constexpr char kSocketName[] = "control";
// The folder that systemd makes for gleaner-volunteer.service, also within a user's runtime folder.
constexpr char kFolderName[] = "gleaner-volunteer";

Error failure(const std::string& what) {
  const int code = errno;
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::generic_category().message(code))};
}

}  // namespace

std::vector<std::string> control_paths(const std::string& given, const std::string& cache_folder) {
  if (!given.empty()) return {given};
  std::vector<std::string> paths;
  const auto add = [&](const char* folder, const char* within = "") {
    if (folder != nullptr && *folder != '\0') {
      paths.push_back((std::filesystem::path(folder) / within / kSocketName).string());
    }
  };
  // NOLINTBEGIN(concurrency-mt-unsafe): at the start there is one thread
  add(std::getenv("RUNTIME_DIRECTORY"));
  add(std::getenv("XDG_RUNTIME_DIR"), kFolderName);
  // NOLINTEND(concurrency-mt-unsafe)
  add(cache_folder.c_str());
  return paths;
}

std::vector<std::string> paths_to_ask(const std::string& given, const std::string& cache_folder) {
  std::vector<std::string> paths = control_paths(given, cache_folder);
  if (given.empty()) {
    paths.push_back((std::filesystem::path("/run") / kFolderName / kSocketName).string());
  }
  return paths;
}

Result<ControlClient> ControlClient::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kInvalidArgument, path + " is longer than the system takes"};
  }
  std::copy(path.begin(), path.end(), static_cast<char*>(address.sun_path));
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return failure("no socket");
  ControlClient client(descriptor);
  (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failure(path);
  }
  return client;
}

ControlClient::~ControlClient() {
  if (socket_ >= 0) close(static_cast<int>(socket_));
}

Result<std::size_t> ControlClient::send_some(std::string_view text) {
  const ssize_t bytes = send(static_cast<int>(socket_), text.data(), text.size(), MSG_NOSIGNAL);
  if (bytes < 0 && errno != EPIPE) return failure("the volunteer does not listen");
  return static_cast<std::size_t>(std::max<ssize_t>(bytes, 0));
}

Result<std::size_t> ControlClient::receive_some(std::span<char> part) {
  const ssize_t bytes = recv(static_cast<int>(socket_), part.data(), part.size(), 0);
  if (bytes < 0) return failure("the volunteer does not answer");
  return static_cast<std::size_t>(bytes);
}

}  // namespace gleaner::volunteer
