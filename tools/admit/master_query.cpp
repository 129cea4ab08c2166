#include "tools/admit/master_query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "common/bytes.hpp"
#include "common/console/terminal.hpp"
#include "common/limits.hpp"
#include "common/net/framed_socket.hpp"
#include "common/net/task_group.hpp"
#include "common/net/tls_context.hpp"
#include "common/net/transports.hpp"
#include "common/result.hpp"
#include "master/door/access_file.hpp"
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
  if (note.port == MasterPort::kPlain) return MasterAddress{*where, std::nullopt};
  const auto key = KeyPair::load(master_key_path(store));
  if (!key) return key.error();
  return MasterAddress{*where, MasterAddress::Secure{key->id(), invite_key(*key, InviteId{})}};
}

namespace {

constexpr std::chrono::seconds kPageAnswerMax{15};
constexpr std::size_t kHeadBytesMax = std::size_t{64} << 10;
constexpr std::size_t kPageBytesMax = kHeadBytesMax + kFrameBytesMax;

struct Answer {
  unsigned status = 0;
  std::string body;
};

std::optional<Answer> parse_answer(const std::string& text) {
  constexpr std::string_view kBegin = "HTTP/1.";
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const std::size_t space = text.find(' ');
  const std::size_t end = text.find(kHeadEnd);
  if (!text.starts_with(kBegin) || end == std::string::npos || space > end) return std::nullopt;
  Answer answer;
  const char* const digits = text.data() + space + 1;
  if (std::from_chars(digits, text.data() + end, answer.status).ec != std::errc{}) {
    return std::nullopt;
  }
  answer.body = text.substr(end + kHeadEnd.size());
  return answer;
}

// All that comes until the other end closes; the text of the stream's error where it fails.
Result<std::string> exchange(const PageAddress& page) {
  asio::ip::tcp::iostream stream;
  stream.expires_after(kPageAnswerMax);
  stream.connect(page.where.host, std::to_string(page.where.port));
  if (!stream) return Error{ErrorCode::kIo, stream.error().message()};
  // Pages answer under addresses in numbers, whatever name brought us there.
  const auto peer = stream.socket().remote_endpoint();
  const HostPort host{peer.address().to_string(), peer.port()};
  stream << "GET /api/v1/status HTTP/1.0\r\nHost: " << to_text(host)
         << "\r\nX-Gleaner-Key: " << page.key << "\r\nConnection: close\r\n\r\n"
         << std::flush;
  std::string text;
  char part[1 << 14];
  while (stream.read(part, sizeof(part)) || stream.gcount() > 0) {
    text.append(part, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kPageBytesMax) return Error{ErrorCode::kProtocol, "its answer has no end"};
  }
  if (stream.error() && stream.error() != asio::error::eof) {
    return Error{ErrorCode::kIo, stream.error().message()};
  }
  return text;
}

}  // namespace

std::optional<PageAddress> parse_page_address(std::string_view text) {
  if (!text.starts_with(kPageScheme)) return std::nullopt;
  text.remove_prefix(kPageScheme.size());
  PageAddress page;
  if (const std::size_t hash = text.find('#'); hash != std::string_view::npos) {
    // The part after the last dot, so that a whole line of an invite does as well.
    const std::string_view key = text.substr(hash + 1);
    page.key = key.substr(key.find_last_of('.') + 1);
    text = text.substr(0, hash);
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  const auto where = parse_host_port(std::string(text));
  const bool is_key = std::all_of(page.key.begin(), page.key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  if (!where || !is_key) return std::nullopt;
  page.where = *where;
  return page;
}

Result<RunStatus> ask_page(const PageAddress& page) {
  const auto failed = [&](ErrorCode code, const std::string& what) {
    return Error{code, fmt::format("the page at {}: {}", to_text(page.where), what)};
  };
  const auto text = exchange(page);
  if (!text) return failed(text.error().code, text.error().message);
  const auto answer = parse_answer(*text);
  if (!answer) return failed(ErrorCode::kProtocol, "what answers there speaks no HTTP");
  if (answer->status != 200) {
    const std::string sentence = answer->body.substr(0, answer->body.find('\n'));
    const bool is_refusal = answer->status == 401 || answer->status == 403;
    return failed(is_refusal ? ErrorCode::kInvite : ErrorCode::kProtocol, printable(sentence));
  }
  auto message = decode(Bytes(answer->body.begin(), answer->body.end()));
  auto* const status = message ? std::get_if<RunStatus>(&*message) : nullptr;
  if (status != nullptr) return std::move(*status);
  return failed(ErrorCode::kProtocol,
                "what answers there is no page of a run, or of another version of Gleaner");
}

}  // namespace gleaner
