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
#include <cstring>
#include <utility>

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
  HttpReply reply;
  reply.status = status;
  reply.body = std::make_shared<const std::string>(fmt::format("{}\n", text));
  return reply;
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
    MHD_add_response_header(response, "Allow", "GET, HEAD");
  }
}

Error cannot_listen(const HostPort& address) {
  return {ErrorCode::kIo,
          fmt::format("cannot serve the page at {}: {}", to_text(address), std::strerror(errno))};
}

}  // namespace

struct HttpServer::Reader {
  HttpServer* server = nullptr;
  MHD_Connection* connection = nullptr;
  StreamPosition position;
  SharedText piece;
  std::size_t taken = 0;  // bytes of it
};

struct MhdCalls {
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url,
                               const char* method, const char* /*version*/, const char* /*upload*/,
                               std::size_t* upload_bytes, void** seen) {
    auto* const server = static_cast<HttpServer*>(self);
    const std::string_view verb(method);
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

  static HttpReply answer(HttpServer& server, MHD_Connection* connection, const char* url) {
    const RequestOrigin origin{header(connection, "Host"), header(connection, "Origin"),
                               header(connection, "Sec-Fetch-Site"),
                               header(connection, "Sec-Fetch-Mode")};
    const std::string_view refusal = refusal_of(origin);
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
    : address_(std::move(address)), handler_(std::move(handler)) {}

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
  daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr, &MhdCalls::on_request, this,
      MHD_OPTION_LISTEN_SOCKET, listener_, MHD_OPTION_CONNECTION_LIMIT, kHttpConnectionsMax,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, kHttpConnectionsPerAddressMax,
      MHD_OPTION_CONNECTION_TIMEOUT, kHttpSilenceSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kHttpConnectionBytes, MHD_OPTION_END);
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
    if ((has_news_ && now - resumed_ >= kNewsPause) || end) resume_readers();
    MHD_run(daemon_);
    if (end && (counts_.streams == 0 || now >= *end)) break;
  }
  resume_readers();
  MHD_run(daemon_);
}

}  // namespace gleaner
