#include "common/http/http_calls.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>

#include "common/host_port.hpp"
#include "common/http/admission.hpp"

namespace gleaner {
namespace {

// Size of the buffer through which a stream's pieces are copied.
constexpr std::size_t kStreamBlockBytes = 4096;
// The page loads nothing from elsewhere, runs nothing inline, and cannot be framed.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'";

std::string_view header(MHD_Connection* connection, const char* name) {
  const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

int descriptor(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

// The peer's numeric address; empty if unknown.
std::string peer_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* const info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (info == nullptr || info->client_addr == nullptr) return {};
  const sockaddr* const peer = info->client_addr;
  const void* const address =
      peer->sa_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(peer)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(peer)->sin_addr;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_ntop(peer->sa_family, address, text.data(), text.size()) == nullptr) return {};
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 at a server of both families
  const std::string_view name(text.data());
  return std::string(name.starts_with(kMapped) ? name.substr(kMapped.size()) : name);
}

// A proxy's requests have this machine's address, whoever asks.
bool is_local(MHD_Connection* connection) {
  for (const char* name : {"Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"}) {
    if (!header(connection, name).empty()) return false;
  }
  return is_loopback(peer_of(connection)) && is_loopback(host_of(header(connection, "Host")));
}

// A program that only takes an address can give the key in it: http://ANYBODY:KEY@HOST:PORT.
std::string basic_password(MHD_Connection* connection) {
  const auto release = [](char* text) { MHD_free(text); };
  char* password = nullptr;
  const std::unique_ptr<char, decltype(release)> user(
      MHD_basic_auth_get_username_password(connection, &password), release);
  const std::unique_ptr<char, decltype(release)> owner(password, release);
  return password == nullptr ? std::string() : std::string(password);
}

std::string page_key(MHD_Connection* connection) {
  if (const auto key = header(connection, "X-Gleaner-Key"); !key.empty()) return std::string(key);
  const auto token = bearer_token(header(connection, MHD_HTTP_HEADER_AUTHORIZATION));
  return token ? std::string(*token) : basic_password(connection);
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

void add_headers(MHD_Response* response, const HttpReply& reply, bool is_last, bool is_open) {
  if (is_open) {
    MHD_add_response_header(response, "Access-Control-Allow-Origin", "*");
    MHD_add_response_header(response, "Access-Control-Allow-Headers",
                            "Accept, Authorization, Content-Type, X-Gleaner-Key");
  }
  if (is_last) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  MHD_add_response_header(response, "Content-Type", reply.type);
  MHD_add_response_header(response, "Content-Security-Policy", kContentPolicy);
  MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
  MHD_add_response_header(response, "Cross-Origin-Resource-Policy",
                          is_open ? "cross-origin" : "same-origin");
  MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Cache-Control", reply.etag.empty() ? "no-store" : "no-cache");
  if (!reply.etag.empty()) MHD_add_response_header(response, "ETag", reply.etag.c_str());
  if (reply.status == MHD_HTTP_UNAUTHORIZED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
  }
  if (reply.status == MHD_HTTP_METHOD_NOT_ALLOWED || reply.status == MHD_HTTP_NO_CONTENT) {
    MHD_add_response_header(response, "Allow", reply.allow);
  }
  if (reply.status == MHD_HTTP_SERVICE_UNAVAILABLE || reply.status == MHD_HTTP_TOO_MANY_REQUESTS) {
    const std::string seconds = std::to_string(reply.retry_after_s);
    MHD_add_response_header(response, "Retry-After", seconds.c_str());
  }
}

HttpReply too_large() {
  return plain(MHD_HTTP_CONTENT_TOO_LARGE,
               fmt::format("body: it has more than {} bytes; send it in parts", kHttpPostBytesMax));
}

}  // namespace

HttpReply http_ending() {
  return plain(MHD_HTTP_SERVICE_UNAVAILABLE, "The program ends.");
}

HttpReply text_reply(unsigned status, const char* type, std::string text) {
  HttpReply reply;
  reply.status = status;
  reply.type = type;
  reply.body = std::make_shared<const std::string>(std::move(text));
  return reply;
}

void HttpAnswerer::operator()(HttpReply reply) const {
  const std::lock_guard guard(mailbox_->lock);
  if (mailbox_->wake_fd < 0) return;
  mailbox_->replies.emplace_back(id_, std::move(reply));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(mailbox_->wake_fd, &one, sizeof(one));
}

void MhdCalls::on_connection(void* self, MHD_Connection* connection, void** /*unused*/,
                             MHD_ConnectionNotificationCode what) {
  HttpPlaces& places = static_cast<HttpServer*>(self)->places_;
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) return places.leave(descriptor(connection));
  const auto turned_out =
      places.arrive(descriptor(connection), peer_of(connection), monotonic_now());
  if (turned_out) shutdown(*turned_out, SHUT_RDWR);
}

MHD_Result MhdCalls::on_request(void* self, MHD_Connection* connection, const char* url,
                                const char* method, const char* /*version*/, const char* upload,
                                std::size_t* upload_bytes, void** seen) {
  auto* const server = static_cast<HttpServer*>(self);
  if (*seen == nullptr) return begin(*server, connection, url, method, seen);
  if (*seen != server) {
    return go_on(*server, *static_cast<HttpServer::Exchange*>(*seen), url, *upload_bytes, upload);
  }
  if (*upload_bytes == 0) return send(*server, connection, answer(*server, connection, url));
  *upload_bytes = 0;  // discards an unexpected body
  return MHD_YES;
}

MHD_Result MhdCalls::begin(HttpServer& server, MHD_Connection* connection, const char* url,
                           std::string_view method, void** seen) {
  server.places_.await_body(descriptor(connection), monotonic_now());
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, kHttpSilenceSeconds);
  if (server.places_.is_spare(descriptor(connection)) && !is_health(url)) {
    return send(
        server, connection,
        plain(MHD_HTTP_SERVICE_UNAVAILABLE,
              "Too many connections are open here, or from your address; ask again later."));
  }
  const bool takes_post = server.handler_.takes_post && server.handler_.takes_post(url);
  if (method == MHD_HTTP_METHOD_POST && takes_post) return begin_post(server, connection, seen);
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    const bool asks_for_options = method == MHD_HTTP_METHOD_OPTIONS;
    HttpReply reply = asks_for_options
                          ? text_reply(MHD_HTTP_NO_CONTENT, kHttpText, "")
                          : plain(MHD_HTTP_METHOD_NOT_ALLOWED, "Nothing here can be changed.");
    if (takes_post) reply.allow = "POST, OPTIONS";
    return send(server, connection, reply);
  }
  *seen = &server;  // the last call of the request sends the answer
  return MHD_YES;
}

std::string_view MhdCalls::refusal_to(const HttpServer& server, MHD_Connection* connection) {
  if (server.handler_.is_for_other_origins) return {};
  return refusal_of({header(connection, "Host"), header(connection, "Origin"),
                     header(connection, "Sec-Fetch-Site"), header(connection, "Sec-Fetch-Mode")},
                    server.reach_);
}

MHD_Result MhdCalls::begin_post(HttpServer& server, MHD_Connection* connection, void** seen) {
  const std::string_view refusal = refusal_to(server, connection);
  if (!refusal.empty()) return send(server, connection, plain(MHD_HTTP_FORBIDDEN, refusal));
  const std::string_view announced = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  std::uint64_t bytes = 0;
  std::from_chars(announced.data(), announced.data() + announced.size(), bytes);
  auto* const exchange = new HttpServer::Exchange;
  exchange->connection = connection;
  // The body is discarded: a client that still sends when the connection closes sees no answer.
  if (bytes > kHttpPostBytesMax) exchange->reply = too_large();
  *seen = exchange;
  return MHD_YES;
}

MHD_Result MhdCalls::go_on(HttpServer& server, HttpServer::Exchange& exchange, const char* url,
                           std::size_t& upload_bytes, const char* upload) {
  if (exchange.reply && upload_bytes == 0) {
    return send(server, exchange.connection, *exchange.reply);
  }
  if (upload_bytes != 0) {
    if (!exchange.reply) take_part(server, exchange, {upload, upload_bytes});
    upload_bytes = 0;
    return MHD_YES;
  }
  // No connection may be suspended when the library stops.
  if (server.is_stopping_) return send(server, exchange.connection, http_ending());
  server.places_.await_answer(descriptor(exchange.connection));
  exchange.id = server.next_id_++;
  server.asked_.emplace(exchange.id, &exchange);
  MHD_suspend_connection(exchange.connection);
  HttpPost post;
  post.path = url;
  post.accept = header(exchange.connection, MHD_HTTP_HEADER_ACCEPT);
  const auto take = [](void* query, MHD_ValueKind, const char* key, const char* value) {
    const std::string text = value == nullptr ? "" : value;
    static_cast<decltype(HttpPost::query)*>(query)->insert_or_assign(key, text);
    return MHD_YES;
  };
  MHD_get_connection_values(exchange.connection, MHD_GET_ARGUMENT_KIND, take, &post.query);
  post.body = std::move(exchange.body);
  post.page_key = page_key(exchange.connection);
  post.is_local = is_local(exchange.connection);
  post.answer.mailbox_ = server.mailbox_;
  post.answer.id_ = exchange.id;
  server.handler_.post(std::move(post));
  return MHD_YES;
}

void MhdCalls::take_part(HttpServer& server, HttpServer::Exchange& exchange,
                         std::string_view part) {
  if (exchange.body.size() + part.size() > kHttpPostBytesMax) exchange.reply = too_large();
  if (server.post_bytes_ + part.size() > kHttpPostBytesAllMax) {
    exchange.reply = plain(MHD_HTTP_SERVICE_UNAVAILABLE,
                           "Too many questions are waiting here; ask again later.");
  }
  if (exchange.reply) {
    exchange.body = {};
    count_bytes(server, exchange, 0);
    return;
  }
  exchange.body += part;
  count_bytes(server, exchange, exchange.body.size());
}

void MhdCalls::count_bytes(HttpServer& server, HttpServer::Exchange& exchange, std::size_t bytes) {
  server.post_bytes_ += bytes - exchange.bytes;
  exchange.bytes = bytes;
}

void MhdCalls::on_end(void* self, MHD_Connection* connection, void** seen,
                      MHD_RequestTerminationCode /*how*/) {
  auto* const server = static_cast<HttpServer*>(self);
  server->places_.await_next_head(descriptor(connection), monotonic_now());
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, kHttpIdleSeconds);
  if (*seen == nullptr || *seen == server) return;
  auto* const exchange = static_cast<HttpServer::Exchange*>(*seen);
  count_bytes(*server, *exchange, 0);
  server->asked_.erase(exchange->id);
  delete exchange;
  *seen = nullptr;
}

HttpReply MhdCalls::answer(HttpServer& server, MHD_Connection* connection, const char* url) {
  const std::string_view refusal = refusal_to(server, connection);
  if (!refusal.empty()) return plain(MHD_HTTP_FORBIDDEN, refusal);
  HttpRequest request;
  request.path = url;
  request.accept = header(connection, "Accept");
  request.last_event_id = header(connection, "Last-Event-ID");
  request.if_none_match = header(connection, "If-None-Match");
  const std::string shown = page_key(connection);
  request.page_key = shown;
  request.is_local = is_local(connection);
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

MHD_Result MhdCalls::send(HttpServer& server, MHD_Connection* connection, const HttpReply& reply) {
  MHD_Response* const response =
      reply.stream ? stream(server, connection, *reply.stream) : response_of(reply.body);
  if (response == nullptr) return MHD_NO;
  const int place = descriptor(connection);
  add_headers(response, reply, server.places_.is_spare(place),
              server.handler_.is_for_other_origins);
  server.places_.await_answer(place);
  const MHD_Result queued = MHD_queue_response(connection, reply.status, response);
  MHD_destroy_response(response);
  const unsigned kind = reply.status / 100;
  ++(kind == 5   ? server.counts_.failed
     : kind == 4 ? server.counts_.refused
                 : server.counts_.answered);
  return queued;
}

MHD_Response* MhdCalls::stream(HttpServer& server, MHD_Connection* connection,
                               const StreamPosition& position) {
  auto* const opened = new HttpServer::Stream{&server, connection, position, {}, 0};
  ++server.counts_.streams;
  MHD_Response* const response = MHD_create_response_from_callback(
      MHD_SIZE_UNKNOWN, kStreamBlockBytes, &read, opened, &forget);
  if (response == nullptr) forget(opened);
  return response;
}

ssize_t MhdCalls::read(void* self, std::uint64_t /*position*/, char* target, std::size_t room) {
  auto* const opened = static_cast<HttpServer::Stream*>(self);
  HttpServer& server = *opened->server;
  if (!opened->piece || opened->taken == opened->piece->size()) {
    opened->piece = server.handler_.next_piece(opened->position);
    opened->taken = 0;
  }
  if (!opened->piece || opened->piece->empty()) {
    if (server.is_stopping_ || opened->position.is_over) return MHD_CONTENT_READER_END_OF_STREAM;
    server.waiting_.insert(opened);
    MHD_suspend_connection(opened->connection);
    return 0;
  }
  const std::size_t count = std::min(room, opened->piece->size() - opened->taken);
  std::memcpy(target, opened->piece->data() + opened->taken, count);
  opened->taken += count;
  return static_cast<ssize_t>(count);
}

void MhdCalls::forget(void* self) {
  auto* const opened = static_cast<HttpServer::Stream*>(self);
  opened->server->waiting_.erase(opened);
  --opened->server->counts_.streams;
  delete opened;
}

}  // namespace gleaner
