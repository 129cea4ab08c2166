#include "tools/admit/master_query.hpp"

#include <fmt/format.h>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "common/bytes.hpp"
#include "common/net/framed_socket.hpp"
#include "common/net/task_group.hpp"
#include "common/net/tcp_link.hpp"
#include "common/net/tls_context.hpp"
#include "master/door/access_file.hpp"
#include "schema/delivery.hpp"
#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"
#include "tools/cli/store_access.hpp"

namespace gleaner {
namespace {

constexpr Millis kConnectMax{5'000};
// A master answers at once; its machine may be busy.
constexpr Millis kAnswerMax{10'000};

asio::awaitable<void> converse(HostPort where, TcpLinkOptions options, Bytes question,
                               Result<Bytes>* answer) {
  Result<std::shared_ptr<FramedSocket>> socket =
      co_await connect_framed(where, kConnectMax, options);
  if (!socket) {
    *answer = socket.error();
    co_return;
  }
  (*socket)->send(std::move(question));
  Result<Bytes> frame = co_await (*socket)->read_frame(kAnswerMax);
  *answer = std::move(frame);
}

template <typename Answer>
Result<Answer> ask(const MasterAddress& address, const Message& question) {
  static_assert((kFactsOf<Answer>.routes & route::kAnswer) != 0);
  const auto failed = [&](ErrorCode code, const std::string& what) {
    return Error{code, fmt::format("the master at {}: {}", to_text(address.where), what)};
  };
  TlsContext tls(KeyPair::make());
  TcpLinkOptions options;
  if (address.secure) {
    options.tls = &tls;
    options.master = address.secure->key;
  }
  asio::io_context io{1};
  Result<Bytes> answer = Error{ErrorCode::kIo, "no answer"};
  std::optional<std::string> broken;
  TaskGroup tasks(io.get_executor(),
                  [&](const std::string&, const std::string& what) { broken = what; });
  tasks.spawn("ask", converse(address.where, options, encode(question), &answer));
  io.run();
  if (broken) return failed(ErrorCode::kIo, *broken);
  if (!answer) return failed(answer.error().code, answer.error().message);
  auto message = decode(*answer);
  if (!message) return failed(ErrorCode::kProtocol, message.error().message);
  if (const auto* refusal = std::get_if<Refusal>(&*message)) {
    return failed(refusal->code, refusal->sentence);
  }
  if (auto* wanted = std::get_if<Answer>(&*message)) return std::move(*wanted);
  return failed(ErrorCode::kProtocol, fmt::format("it answers with {}", message_name(*message)));
}

std::string invite_text(const MasterAddress& address) {
  return address.secure ? to_text(address.secure->invite) : std::string();
}

}  // namespace

Result<RunStatus> ask_status(const MasterAddress& address) {
  return ask<RunStatus>(address,
                        Observe{kProtocolMin, kProtocolMax, kBuildVersion, invite_text(address)});
}

Result<AccessAnswer> ask_access(const MasterAddress& address, AccessRequest request) {
  request.protocol_min = kProtocolMin;
  request.protocol_max = kProtocolMax;
  request.build = kBuildVersion;
  request.invite = invite_text(address);
  return ask<AccessAnswer>(address, request);
}

int exit_status_of_asking(const Result<void>& done) {
  const int status = report_on_store(done);
  if (done) return status;
  switch (done.error().code) {
    case ErrorCode::kIo:
    case ErrorCode::kProtocol:
    case ErrorCode::kInvite:
    case ErrorCode::kIdentity:
      return static_cast<int>(ExitCode::kNetwork);
    default:
      return status;
  }
}

Result<MasterAddress> owner_address(const std::string& store, const RunningMaster& note) {
  const auto where = parse_host_port(note.address);
  if (!where) {
    return Error{ErrorCode::kCorrupt, "the note of its master cannot be read"};
  }
  if (note.is_plain) return MasterAddress{*where, std::nullopt};
  const auto key = KeyPair::load(master_key_path(store));
  if (!key) return key.error();
  return MasterAddress{*where, MasterAddress::Secure{key->id(), invite_key(*key, InviteId{})}};
}

}  // namespace gleaner
