#include "common/http/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/http/http_calls.hpp"
#include "common/thread_pool.hpp"

namespace gleaner {
namespace {

// Shortest time between two deliveries of news to streams.
constexpr Millis kNewsPause{200};
// How long readers may take the rest when the server ends.
constexpr Millis kFarewell{300};
// The server gives way to training.
constexpr int kHttpNice = 5;
// Closed connections beyond the places, whose end the library has not noticed yet.
constexpr unsigned kConnectionsClosing = 64;

Error cannot_listen(const HostPort& address) {
  return {ErrorCode::kIo,
          fmt::format("cannot serve the page at {}: {}", to_text(address), std::strerror(errno))};
}

// A reply made once: assets never change while the process lives.
struct AssetReply {
  SharedText body;
  std::string etag;
};

HttpReply asset(const PageAsset& found) {
  static std::map<std::string_view, AssetReply> replies;
  AssetReply& kept = replies[found.path];
  if (!kept.body) {
    kept.body = std::make_shared<const std::string>(found.content);
    kept.etag = fmt::format("\"{:016x}\"", XXH3_64bits(found.content.data(), found.content.size()));
  }
  HttpReply made;
  made.type = found.type;
  made.body = kept.body;
  made.etag = kept.etag;
  return made;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::prepare(const HostPort& address,
                                                        HttpHandler handler, HttpReach reach) {
  std::unique_ptr<HttpServer> server(new HttpServer(address, std::move(handler), reach));
  if (auto listening = server->listen(); !listening) return listening.error();
  return server;
}

void HttpServer::start() {
  thread_ = std::thread([this] { serve(); });
}

HttpServer::HttpServer(HostPort address, HttpHandler handler, HttpReach reach)
    : address_(std::move(address)),
      handler_(std::move(handler)),
      reach_(reach),
      mailbox_(std::make_shared<HttpAnswerer::Mailbox>()) {}

Result<void> HttpServer::listen() {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  if (reach_ == HttpReach::kThisMachine && !is_loopback(address_.host)) {
    return Error{ErrorCode::kIo, "the page is served only at addresses of this machine, not at " +
                                     to_text(address_)};
  }
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  const std::string host = address_.host == "localhost" ? "127.0.0.1" : address_.host;
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address_.port);
    bytes = sizeof(*v6);
  } else if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address_.port);
    bytes = sizeof(*v4);
  } else {
    return Error{ErrorCode::kIo,
                 "the page is served at an address in numbers, not at " + to_text(address_)};
  }
  auto* const name = reinterpret_cast<sockaddr*>(&storage);
  constexpr int kBacklog = 128;
  const int yes = 1;
  listener_ = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0 || setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(listener_, name, bytes) != 0 || ::listen(listener_, kBacklog) != 0 ||
      getsockname(listener_, name, &bytes) != 0) {
    return cannot_listen(address_);
  }
  address_.port = ntohs(storage.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return cannot_listen(address_);
  mailbox_->wake_fd = wake_fd_;
  const HttpPlaceLimits places;
  const auto connections =
      static_cast<unsigned>(places.ordinary_max + places.spare_max) + kConnectionsClosing;
  daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, &MhdCalls::on_request, this,
      MHD_OPTION_LISTEN_SOCKET, listener_, MHD_OPTION_CONNECTION_LIMIT, connections,
      MHD_OPTION_NOTIFY_CONNECTION, &MhdCalls::on_connection, this, MHD_OPTION_NOTIFY_COMPLETED,
      &MhdCalls::on_end, this, MHD_OPTION_CONNECTION_TIMEOUT, kHttpSilenceSeconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kHttpConnectionBytes, MHD_OPTION_END);
  if (daemon_ == nullptr) return cannot_listen(address_);
  listener_ = -1;  // owned by the daemon now
  const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  GLEANER_CHECK(info != nullptr);
  epoll_fd_ = info->epoll_fd;
  return {};
}

HttpServer::~HttpServer() {
  is_stopping_ = true;
  if (thread_.joinable()) {
    wake();
    thread_.join();
  }
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  if (listener_ >= 0) close(listener_);
  const std::lock_guard guard(mailbox_->lock);
  mailbox_->wake_fd = -1;
  if (wake_fd_ >= 0) close(wake_fd_);
}

void HttpServer::wake() {
  const std::uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof(one));  // fails only if a full counter has woken it already
}

HttpCounts HttpServer::counts() const {
  HttpCounts counts = counts_;
  const MHD_DaemonInfo* const info =
      MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  if (info != nullptr) counts.connections = info->num_connections;
  return counts;
}

void HttpServer::resume_streams() {
  for (Stream* const stream : std::exchange(waiting_, {})) {
    MHD_resume_connection(stream->connection);
  }
  has_news_ = false;
  resumed_ = monotonic_now();
}

void HttpServer::deliver_answers(bool is_end) {
  std::vector<std::pair<std::uint64_t, HttpReply>> replies;
  {
    const std::lock_guard guard(mailbox_->lock);
    replies.swap(mailbox_->replies);
  }
  if (is_end) {
    for (const auto& [id, exchange] : asked_) {
      replies.emplace_back(id, http_ending());
    }
  }
  for (auto& [id, reply] : replies) {
    const auto found = asked_.find(id);
    if (found == asked_.end()) continue;
    Exchange& exchange = *found->second;
    asked_.erase(found);
    MhdCalls::count_bytes(*this, exchange, reply.body ? reply.body->size() : 0);
    exchange.reply = std::move(reply);
    MHD_resume_connection(exchange.connection);
  }
}

int HttpServer::patience(Instant now) const {
  MHD_UNSIGNED_LONG_LONG wanted = 0;
  int milliseconds = -1;
  if (MHD_get_timeout(daemon_, &wanted) == MHD_YES) {
    milliseconds = static_cast<int>(std::min<MHD_UNSIGNED_LONG_LONG>(wanted, 60'000));
  }
  const auto until = [&](Instant due) {
    const auto left = static_cast<int>(std::max<std::int64_t>(0, (due - now).count() / 1000 + 1));
    milliseconds = milliseconds < 0 ? left : std::min(milliseconds, left);
  };
  if (has_news_) until(resumed_ + kNewsPause);
  if (const auto due = places_.next_due()) until(*due);
  return milliseconds;
}

void HttpServer::serve() {
  give_way(kHttpNice);
  std::optional<Instant> end;
  for (;;) {
    pollfd fds[] = {{epoll_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    poll(fds, 2, end ? 20 : patience(monotonic_now()));
    const Instant now = monotonic_now();
    if (std::uint64_t count = 0; read(wake_fd_, &count, sizeof(count)) > 0) {
      if (handler_.on_wake) handler_.on_wake();
      has_news_ = true;
    }
    if (is_stopping_ && !end) end = now + kFarewell;
    deliver_answers(false);
    if ((has_news_ && now - resumed_ >= kNewsPause) || end) resume_streams();
    // The library notices the shutdown and closes the connection.
    for (const int overdue : places_.take_overdue(now)) shutdown(overdue, SHUT_RDWR);
    MHD_run(daemon_);
    if (end && ((counts_.streams == 0 && asked_.empty()) || now >= *end)) break;
  }
  resume_streams();
  deliver_answers(true);
  MHD_run(daemon_);
}

std::optional<HttpReply> asset_reply(std::string_view path, std::span<const PageAsset> own) {
  for (const auto assets : {own, shared_page_assets()}) {
    for (const PageAsset& found : assets) {
      if (found.path == path) return asset(found);
    }
  }
  return std::nullopt;
}

}  // namespace gleaner
