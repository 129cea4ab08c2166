#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

namespace fs = std::filesystem;

constexpr timeval kPatience{5, 0};
constexpr char kSocketName[] = "control";
// The folder that systemd makes for gleaner-volunteer.service, also within a user's runtime folder.
constexpr char kFolderName[] = "gleaner-volunteer";

Error failure(const std::string& what) {
  const int code = errno;
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::generic_category().message(code))};
}

// The folder of a user without a session: of root, cron, a container. Empty if somebody else might
// have made it.
std::string own_temporary_folder() {
  const std::string folder = fmt::format("/tmp/{}-{}", kFolderName, ::geteuid());
  (void)::mkdir(folder.c_str(), 0700);

  struct stat facts {};

  const bool is_own = ::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
                      facts.st_uid == ::geteuid() && (facts.st_mode & 077u) == 0;
  return is_own ? folder : "";
}

}  // namespace

std::vector<std::string> control_paths(const std::string& given, const std::string& cache_folder) {
  if (!given.empty()) return {given};
  std::vector<std::string> paths;
  if (!cache_folder.empty()) paths.push_back(fs::path(cache_folder) / kSocketName);
  // NOLINTBEGIN(concurrency-mt-unsafe): at the start there is one thread
  const char* const of_service = std::getenv("RUNTIME_DIRECTORY");
  const char* const of_session = std::getenv("XDG_RUNTIME_DIR");
  // NOLINTEND(concurrency-mt-unsafe)
  // Programs of one user may have the session's variable or, started over ssh, not have it.
  const std::string session = of_session != nullptr && *of_session != '\0'
                                  ? of_session
                                  : fmt::format("/run/user/{}", ::geteuid());
  if (of_service != nullptr && *of_service != '\0') {
    paths.push_back(fs::path(of_service) / kSocketName);
  } else if (::access(session.c_str(), W_OK | X_OK) == 0) {
    paths.push_back(fs::path(session) / kFolderName / kSocketName);
  } else if (const std::string folder = own_temporary_folder(); !folder.empty()) {
    paths.push_back(fs::path(folder) / kSocketName);
  }
  return paths;
}

std::vector<std::string> paths_to_ask(const std::string& given, const std::string& cache_folder) {
  std::vector<std::string> paths = control_paths(given, cache_folder);
  if (given.empty() && cache_folder.empty()) {
    paths.push_back(fs::path("/run") / kFolderName / kSocketName);
  } else {
    paths.resize(1);  // no other volunteer may answer
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
