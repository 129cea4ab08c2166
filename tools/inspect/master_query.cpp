#include "tools/inspect/master_query.hpp"

#include <fmt/format.h>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <optional>
#include <utility>

#include "common/net/connect.hpp"
#include "common/net/framed_socket.hpp"
#include "common/net/task_group.hpp"
#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {
namespace {

constexpr Millis kConnectMax{5'000};
// A master answers at once; its machine may be busy.
constexpr Millis kAnswerMax{10'000};

asio::awaitable<void> converse(HostPort address, Bytes question, Result<Bytes>* answer) {
  auto connected = co_await resolve_and_connect(address, kConnectMax);
  if (!connected) {
    *answer = connected.error();
    co_return;
  }
  FramedSocket socket(std::move(*connected), FramedSocketLimits{});
  socket.send(std::move(question));
  Result<Bytes> frame = co_await socket.read_frame(kAnswerMax);
  *answer = std::move(frame);
}

}  // namespace

Result<RunStatus> ask_master(const HostPort& address, const std::string& token) {
  const auto failed = [&](ErrorCode code, const std::string& what) {
    return Error{code, fmt::format("the master at {}: {}", to_text(address), what)};
  };
  asio::io_context io{1};
  Result<Bytes> answer = Error{ErrorCode::kIo, "no answer"};
  std::optional<std::string> broken;
  TaskGroup tasks(io.get_executor(),
                  [&](const std::string&, const std::string& what) { broken = what; });
  tasks.spawn("ask",
              converse(address, encode(Observe{kProtocolMin, kProtocolMax, kBuildVersion, token}),
                       &answer));
  io.run();
  if (broken) return failed(ErrorCode::kIo, *broken);
  if (!answer) return failed(ErrorCode::kIo, answer.error().message);
  auto message = decode(*answer);
  if (!message) return failed(ErrorCode::kProtocol, message.error().message);
  if (const auto* refusal = std::get_if<Refusal>(&*message)) {
    return failed(refusal->code, refusal->sentence);
  }
  if (auto* status = std::get_if<RunStatus>(&*message)) return std::move(*status);
  return failed(ErrorCode::kProtocol,
                fmt::format("it answers with {} instead of a status", message_name(*message)));
}

}  // namespace gleaner
