#include "schema/question.hpp"

#include "common/net/tcp_link.hpp"
#include "common/net/tls_context.hpp"
#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {
namespace {

constexpr Millis kConnectMax{5'000};
// A master answers at once; its machine may be busy.
constexpr Millis kAnswerMax{10'000};

}  // namespace

Result<Message> ask_master(const MasterAddress& address, const Message& question) {
  const auto failed = [&](const Error& error) {
    return Error{error.code,
                 fmt::format("the master at {}: {}", to_text(address.where), error.message)};
  };
  TlsContext tls(KeyPair::make());
  TcpLinkOptions options;
  if (address.secure) {
    options.tls = &tls;
    options.master = address.secure->key;
  }
  const Result<Bytes> answer =
      ask_tcp(address.where, kConnectMax, kAnswerMax, options, encode(question));
  if (!answer) return failed(answer.error());
  auto message = decode(*answer);
  if (!message) return failed({ErrorCode::kProtocol, message.error().message});
  if (const auto* refusal = std::get_if<Refusal>(&*message)) {
    return failed({refusal->code, refusal->sentence});
  }
  return message;
}

Observe observe_by(const MasterAddress& address) {
  return {kProtocolMin, kProtocolMax, kBuildVersion,
          address.secure ? to_text(address.secure->invite) : std::string()};
}

}  // namespace gleaner
