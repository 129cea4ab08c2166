#include "volunteer/lend/control_client.hpp"

#include <array>
#include <utility>

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{1} << 20;

}  // namespace

ControlClient::ControlClient(ControlClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)) {}

Result<std::string> ControlClient::ask(const std::string& request) {
  const std::string line = request + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const auto bytes = send_some(std::string_view(line).substr(sent));
    if (!bytes) return bytes.error();
    // A volunteer that refuses has answered already, and hung up.
    if (*bytes == 0) break;
    sent += *bytes;
  }
  std::string answer;
  std::array<char, 4096> part{};
  while (answer.size() < kAnswerBytesMax) {
    const auto bytes = receive_some(part);
    if (!bytes) return bytes.error();
    if (*bytes == 0) return Error{ErrorCode::kIo, "the volunteer hung up"};
    answer.append(part.data(), *bytes);
    if (answer.back() == '\n') {
      answer.pop_back();
      return answer;
    }
  }
  return Error{ErrorCode::kIo, "the volunteer's answer has no end"};
}

Result<std::string> ask_volunteer(const std::string& path, const std::string& request) {
  auto client = ControlClient::connect(path);
  if (!client) return client.error();
  return client->ask(request);
}

}  // namespace gleaner::volunteer
