#include "master/http/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "common/check.hpp"
#include "common/thread_priority.hpp"
#include "master/http/request_rules.hpp"

namespace gleaner {
namespace {

// News reach the readers of streams at most this often, however fast they come.
constexpr Millis kNewsPause{200};
// How long readers may take what is left when the server ends.
constexpr Millis kFarewell{300};
// A stream's pieces are copied through a buffer of this size.
constexpr std::size_t kStreamBlockBytes = 4096;
// Looking gives way to training.
constexpr int kHttpNice = 5;

// Nothing on the page comes from elsewhere, runs inline or can be framed.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'";

std::string_view header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

HttpReply plain(unsigned status, std::string_view text) {
  return text_reply(status, kHttpText, fmt::format("{}\n", text));
}

void free_shared(void* text) {
  delete static_cast<SharedText*>(text);
}

MHD_Response* response_of(const SharedText& body) {
  static char nothing[] = "";
  if (!body || body->empty()) {
    return MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
  }
  // The library takes no pointer to const; it only reads.
  return MHD_create_response_from_buffer_with_free_callback_cls(
      body->size(), const_cast<char*>(body->data()), &free_shared, new SharedText(body));
}

void add_headers(MHD_Response* response, const HttpReply& reply) {
  MHD_add_response_header(response, "Content-Type", reply.type);
  MHD_add_response_header(response, "Content-Security-Policy", kContentPolicy);
  MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
  MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
  MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Cache-Control", reply.etag.empty() ? "no-store" : "no-cache");
  if (!reply.etag.empty()) MHD_add_response_header(response, "ETag", reply.etag.c_str());
  if (reply.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, "Allow", reply.allow);
  }
  if (reply.status == MHD_HTTP_SERVICE_UNAVAILABLE) {
    MHD_add_response_header(response, "Retry-After", "1");
  }
}

Error cannot_listen(const HostPort& address) {
  return {ErrorCode::kIo,
          fmt::format("cannot serve the page at {}: {}", to_text(address), std::strerror(errno))};
}

HttpReply too_large() {
  return plain(MHD_HTTP_CONTENT_TOO_LARGE,
               fmt::format("body: it has more than {} bytes; send it in parts", kHttpPostBytesMax));
}

HttpReply ending() {
  return plain(MHD_HTTP_SERVICE_UNAVAILABLE, "The program ends.");
}

}  // namespace

HttpReply text_reply(unsigned status, const char* type, std::string text) {
  HttpReply reply;
  reply.status = status;
  reply.type = type;
  reply.body = std::make_shared<const std::string>(std::move(text));
  return reply;
}

struct HttpAnswerer::Mailbox {
  std::mutex lock;
  std::vector<std::pair<std::uint64_t, HttpReply>> replies;
  int wake_fd = -1;  // -1: the server is gone
};

void HttpAnswerer::operator()(HttpReply reply) const {
  const std::lock_guard guard(mailbox_->lock);
  if (mailbox_->wake_fd < 0) return;
  mailbox_->replies.emplace_back(id_, std::move(reply));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(mailbox_->wake_fd, &one, sizeof(one));
}

struct HttpServer::Exchange {
  MHD_Connection* connection = nullptr;
  std::uint64_t id = 0;   // 0 until the body is complete
  std::string body;       // as far as it has come
  std::size_t bytes = 0;  // that it counts for in post_bytes_
  std::optional<HttpReply> reply;
};

struct HttpServer::Reader {
  HttpServer* server = nullptr;
  MHD_Connection* connection = nullptr;
  StreamPosition position;
  SharedText piece;
  std::size_t taken = 0;  // bytes of it
};

struct MhdCalls {
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url,
                               const char* method, const char* /*version*/, const char* upload,
                               std::size_t* upload_bytes, void** seen) {
    auto* const server = static_cast<HttpServer*>(self);
    if (*seen != nullptr && *seen != server) {
      return go_on(*server, *static_cast<HttpServer::Exchange*>(*seen), url, *upload_bytes, upload);
    }
    const std::string_view verb(method);
    const bool is_post = verb == MHD_HTTP_METHOD_POST && server->handler_.takes_post &&
                         server->handler_.takes_post(url);
    if (is_post) return begin_post(*server, connection, seen);
    const bool is_read = verb == MHD_HTTP_METHOD_GET || verb == MHD_HTTP_METHOD_HEAD;
    if (is_read && (*seen == nullptr || *upload_bytes != 0)) {
      // Bodies of requests are thrown away; the answer follows with the last call.
      *seen = server;
      *upload_bytes = 0;
      return MHD_YES;
    }
    return send(*server, connection,
                is_read ? answer(*server, connection, url)
                        : plain(MHD_HTTP_METHOD_NOT_ALLOWED, "Nothing here can be changed."));
  }

  static std::string_view refusal_to(MHD_Connection* connection) {
    return refusal_of({header(connection, "Host"), header(connection, "Origin"),
                       header(connection, "Sec-Fetch-Site"), header(connection, "Sec-Fetch-Mode")});
  }

  static MHD_Result begin_post(HttpServer& server, MHD_Connection* connection, void** seen) {
    const std::string_view refusal = refusal_to(connection);
    if (!refusal.empty()) return send(server, connection, plain(MHD_HTTP_FORBIDDEN, refusal));
    const std::string_view announced = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    std::uint64_t bytes = 0;
    std::from_chars(announced.data(), announced.data() + announced.size(), bytes);
    auto* const exchange = new HttpServer::Exchange;
    exchange->connection = connection;
    // The body is thrown away: who still sends when the connection closes sees no answer.
    if (bytes > kHttpPostBytesMax) exchange->reply = too_large();
    *seen = exchange;
    return MHD_YES;
  }

  static MHD_Result go_on(HttpServer& server, HttpServer::Exchange& exchange, const char* url,
                          std::size_t& upload_bytes, const char* upload) {
    if (exchange.reply && upload_bytes == 0) {
      return send(server, exchange.connection, *exchange.reply);
    }
    if (upload_bytes != 0) {
      if (!exchange.reply) take_part(server, exchange, {upload, upload_bytes});
      upload_bytes = 0;
      return MHD_YES;
    }
    // The library must be stopped with nobody suspended.
    if (server.is_stopping_) return send(server, exchange.connection, ending());
    exchange.id = server.next_id_++;
    server.asked_.emplace(exchange.id, &exchange);
    MHD_suspend_connection(exchange.connection);
    HttpPost post;
    post.path = url;
    post.accept = header(exchange.connection, MHD_HTTP_HEADER_ACCEPT);
    post.body = std::move(exchange.body);
    post.answer.mailbox_ = server.mailbox_;
    post.answer.id_ = exchange.id;
    server.handler_.post(std::move(post));
    return MHD_YES;
  }

  // Adds to the body. With a reply set, the rest is thrown away.
  static void take_part(HttpServer& server, HttpServer::Exchange& exchange, std::string_view part) {
    if (exchange.body.size() + part.size() > kHttpPostBytesMax) exchange.reply = too_large();
    if (server.post_bytes_ + part.size() > kHttpPostBytesAllMax) {
      exchange.reply = plain(MHD_HTTP_SERVICE_UNAVAILABLE,
                             "Others have more questions here than can be held; ask again later.");
    }
    if (exchange.reply) {
      exchange.body = {};
      count_bytes(server, exchange, 0);
      return;
    }
    exchange.body += part;
    count_bytes(server, exchange, exchange.body.size());
  }

  static void count_bytes(HttpServer& server, HttpServer::Exchange& exchange, std::size_t bytes) {
    server.post_bytes_ += bytes - exchange.bytes;
    exchange.bytes = bytes;
  }

  // Whatever came of a request, it is over.
  static void on_end(void* self, MHD_Connection* /*connection*/, void** seen,
                     MHD_RequestTerminationCode /*how*/) {
    auto* const server = static_cast<HttpServer*>(self);
    if (*seen == nullptr || *seen == server) return;
    auto* const exchange = static_cast<HttpServer::Exchange*>(*seen);
    count_bytes(*server, *exchange, 0);
    server->asked_.erase(exchange->id);
    delete exchange;
    *seen = nullptr;
  }

  static HttpReply answer(HttpServer& server, MHD_Connection* connection, const char* url) {
    const std::string_view refusal = refusal_to(connection);
    if (!refusal.empty()) return plain(MHD_HTTP_FORBIDDEN, refusal);
    HttpRequest request;
    request.path = url;
    request.accept = header(connection, "Accept");
    request.last_event_id = header(connection, "Last-Event-ID");
    request.if_none_match = header(connection, "If-None-Match");
    request.query = [connection](const char* key) -> std::string_view {
      const char* const value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, key);
      return value == nullptr ? std::string_view() : std::string_view(value);
    };
    HttpReply reply = server.handler_.answer(request);
    if (reply.status == MHD_HTTP_OK && !reply.etag.empty() && request.if_none_match == reply.etag) {
      reply.status = MHD_HTTP_NOT_MODIFIED;
      reply.body.reset();
    }
    return reply;
  }

  static MHD_Result send(HttpServer& server, MHD_Connection* connection, const HttpReply& reply) {
    MHD_Response* const response =
        reply.stream ? stream(server, connection, *reply.stream) : response_of(reply.body);
    if (response == nullptr) return MHD_NO;
    add_headers(response, reply);
    const MHD_Result queued = MHD_queue_response(connection, reply.status, response);
    MHD_destroy_response(response);
    const unsigned kind = reply.status / 100;
    ++(kind == 5   ? server.counts_.failed
       : kind == 4 ? server.counts_.refused
                   : server.counts_.answered);
    return queued;
  }

  static MHD_Response* stream(HttpServer& server, MHD_Connection* connection,
                              const StreamPosition& position) {
    auto* const reader = new HttpServer::Reader{&server, connection, position, {}, 0};
    ++server.counts_.streams;
    MHD_Response* const response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, kStreamBlockBytes, &read, reader, &forget);
    if (response == nullptr) forget(reader);
    return response;
  }

  static ssize_t read(void* self, std::uint64_t /*position*/, char* target, std::size_t room) {
    auto* const reader = static_cast<HttpServer::Reader*>(self);
    HttpServer& server = *reader->server;
    if (!reader->piece || reader->taken == reader->piece->size()) {
      reader->piece = server.handler_.next_piece(reader->position);
      reader->taken = 0;
    }
    if (!reader->piece || reader->piece->empty()) {
      if (server.is_stopping_) return MHD_CONTENT_READER_END_OF_STREAM;
      server.waiting_.insert(reader);
      MHD_suspend_connection(reader->connection);
      return 0;
    }
    const std::size_t count = std::min(room, reader->piece->size() - reader->taken);
    std::memcpy(target, reader->piece->data() + reader->taken, count);
    reader->taken += count;
    return static_cast<ssize_t>(count);
  }

  static void forget(void* self) {
    auto* const reader = static_cast<HttpServer::Reader*>(self);
    reader->server->waiting_.erase(reader);
    --reader->server->counts_.streams;
    delete reader;
  }
};

Result<std::unique_ptr<HttpServer>> HttpServer::prepare(const HostPort& address,
                                                        HttpHandler handler) {
  std::unique_ptr<HttpServer> server(new HttpServer(address, std::move(handler)));
  if (auto listening = server->listen(); !listening) return listening.error();
  return server;
}

void HttpServer::start() {
  thread_ = std::thread([this] { serve(); });
}

HttpServer::HttpServer(HostPort address, HttpHandler handler)
    : address_(std::move(address)),
      handler_(std::move(handler)),
      mailbox_(std::make_shared<HttpAnswerer::Mailbox>()) {}

Result<void> HttpServer::listen() {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  if (address_.host == "::1") {
    auto* const target = reinterpret_cast<sockaddr_in6*>(&storage);
    *target = {AF_INET6, htons(address_.port), 0, in6addr_loopback, 0};
    bytes = sizeof(sockaddr_in6);
  } else {
    auto* const target = reinterpret_cast<sockaddr_in*>(&storage);
    target->sin_family = AF_INET;
    target->sin_port = htons(address_.port);
    target->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (address_.host != "localhost" &&
        inet_pton(AF_INET, address_.host.c_str(), &target->sin_addr) != 1) {
      return Error{
          ErrorCode::kIo,
          "the page is served at addresses of this machine alone, not at " + to_text(address_)};
    }
    bytes = sizeof(sockaddr_in);
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
  address_.port =
      ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return cannot_listen(address_);
  mailbox_->wake_fd = wake_fd_;
  daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, &MhdCalls::on_request, this,
      MHD_OPTION_LISTEN_SOCKET, listener_, MHD_OPTION_CONNECTION_LIMIT, kHttpConnectionsMax,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, kHttpConnectionsPerAddressMax,
      MHD_OPTION_NOTIFY_COMPLETED, &MhdCalls::on_end, this, MHD_OPTION_CONNECTION_TIMEOUT,
      kHttpSilenceSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kHttpConnectionBytes,
      MHD_OPTION_END);
  if (daemon_ == nullptr) return cannot_listen(address_);
  listener_ = -1;  // the daemon's
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
  (void)!write(wake_fd_, &one, sizeof(one));  // a full counter has woken it already
}

HttpCounts HttpServer::counts() const {
  HttpCounts counts = counts_;
  const MHD_DaemonInfo* const info =
      MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  if (info != nullptr) counts.connections = info->num_connections;
  return counts;
}

void HttpServer::resume_readers() {
  for (Reader* const reader : std::exchange(waiting_, {})) {
    MHD_resume_connection(reader->connection);
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
      replies.emplace_back(id, ending());
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
  if (has_news_) {
    const Micros left = resumed_ + kNewsPause - now;
    const int news = static_cast<int>(std::max<std::int64_t>(0, left.count() / 1000 + 1));
    milliseconds = milliseconds < 0 ? news : std::min(milliseconds, news);
  }
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
    if ((has_news_ && now - resumed_ >= kNewsPause) || end) resume_readers();
    MHD_run(daemon_);
    if (end && ((counts_.streams == 0 && asked_.empty()) || now >= *end)) break;
  }
  resume_readers();
  deliver_answers(true);
  MHD_run(daemon_);
}

}  // namespace gleaner
