// An HTTP server for many slow readers: one thread, one epoll set, no thread or growing buffer per
// reader. Ordinary answers are whole texts that readers share. Streams (server-sent events) are
// asked for their next piece when the reader has taken the last one, so a reader's state is a
// position and one shared piece, however slow it is; while there is nothing new its connection is
// suspended and costs nothing. The body of a POST is taken whole, up to a limit, and handed to
// whoever answers it on a thread of theirs; until the answer comes, that connection is suspended.
//
// Where an address has all its connections, or all are taken, a further one is answered with status
// 503 and closed, but /healthz and /readyz are answered as always.
//
// The constructor's thread starts and destroys it; wake() may be called from any thread; the
// handler is called on the server's own thread only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "common/host_port.hpp"
#include "common/http/admission.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

struct MHD_Daemon;

namespace gleaner {

using SharedText = std::shared_ptr<const std::string>;

// Who takes nothing for that long is closed; HttpPlaceLimits says until when a request must come.
inline constexpr unsigned kHttpSilenceSeconds = 30;
// Memory of a connection for its request and its reply's headers.
inline constexpr std::size_t kHttpConnectionBytes = std::size_t{16} << 10;

// A body of a POST, and all bodies together with the answers to them that are not taken yet.
inline constexpr std::size_t kHttpPostBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kHttpPostBytesAllMax = std::size_t{64} << 20;

struct HttpRequest {
  std::string_view path;
  std::string_view accept;         // header Accept
  std::string_view last_event_id;  // header Last-Event-ID
  std::string_view if_none_match;  // header If-None-Match
  // Header X-Gleaner-Key, else Authorization: what Bearer has, or the password of Basic.
  std::string_view page_key;
  bool is_local = false;  // from this machine, under a loopback address or localhost
  // Value of a query's key; empty when there is none.
  std::function<std::string_view(const char* key)> query;
};

// Where a reader of a stream stands.
struct StreamPosition {
  std::uint64_t version = 0;  // of the state that it was sent last
  std::uint64_t event = 0;    // number of the first event that it lacks
  // Who reads, as in HttpRequest.
  std::string page_key{};
  bool is_local = false;
  bool is_over = false;  // set by next_piece(): nothing more comes
};

inline constexpr const char* kHttpText = "text/plain; charset=utf-8";
inline constexpr const char* kHttpJson = "application/json";

struct HttpReply {
  unsigned status = 200;
  const char* type = kHttpText;
  SharedText body;
  std::string etag;                      // empty: nothing may be kept by the browser
  std::optional<StreamPosition> stream;  // instead of a body: a stream that begins there
  const char* allow = "GET, HEAD";       // for status 405
  unsigned retry_after_s = 1;            // for status 429 and 503
};

// A reply whose body is this text, of the media type `type`.
HttpReply text_reply(unsigned status, const char* type, std::string text);

// Gives the answer to one POST: once, from any thread, also when the server is gone.
class HttpAnswerer {
 public:
  void operator()(HttpReply reply) const;

 private:
  friend class HttpServer;
  friend struct MhdCalls;

  // Answers on their way to the server's thread.
  struct Mailbox;

  std::shared_ptr<Mailbox> mailbox_;
  std::uint64_t id_ = 0;
};

struct HttpPost {
  std::string path;
  std::string accept;     // header Accept
  std::string body;       // at most kHttpPostBytesMax
  std::string page_key;   // as HttpRequest's; no page of another origin can send it
  bool is_local = false;  // as HttpRequest's
  HttpAnswerer answer;
};

struct HttpHandler {
  std::function<HttpReply(const HttpRequest&)> answer;
  // The stream's next piece after `position`, which moves on; null while there is nothing new.
  std::function<SharedText(StreamPosition& position)> next_piece;
  // Whether bodies may be sent to the path; unset: to none.
  std::function<bool(std::string_view path)> takes_post;
  // Must not take long: it hands the work on.
  std::function<void(HttpPost post)> post;
  // Called when wake() has been, before the streams are asked.
  std::function<void()> on_wake;
};

// Counted since the start; read by the handler on the server's thread.
struct HttpCounts {
  std::uint64_t answered = 0;     // replies with status 2xx and 3xx
  std::uint64_t refused = 0;      // 4xx
  std::uint64_t failed = 0;       // 5xx
  std::uint64_t connections = 0;  // open now
  std::uint64_t streams = 0;      // of these
};

class HttpServer {
 public:
  // Listens. `address` is one of this machine's loopback addresses, or localhost; with kNetwork
  // and kAnyName also any other of its addresses in numbers. Port 0 takes a free one. kIo when the
  // port is taken, or cannot be had.
  static Result<std::unique_ptr<HttpServer>> prepare(const HostPort& address, HttpHandler handler,
                                                     HttpReach reach = HttpReach::kThisMachine);
  // Serves, from then on.
  void start();
  // Gives readers a moment to take what is left, then closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port in use.
  [[nodiscard]] const HostPort& address() const { return address_; }

  // There is news: the handler's on_wake() is called soon, then streams are asked for more. Never
  // waits.
  void wake();

  // On the server's thread.
  [[nodiscard]] HttpCounts counts() const;

  // A stream that somebody reads, and a POST; the server's own.
  struct Stream;
  struct Exchange;

 private:
  friend struct MhdCalls;  // what libmicrohttpd calls

  HttpServer(HostPort address, HttpHandler handler, HttpReach reach);
  Result<void> listen();
  void serve();
  void resume_streams();
  // Lets answered POSTs go on; with `is_end`, also those that nobody has answered.
  void deliver_answers(bool is_end);
  // The time until something is due, milliseconds; negative: nothing is.
  [[nodiscard]] int patience(Instant now) const;

  HostPort address_;
  HttpHandler handler_;
  const HttpReach reach_;
  HttpCounts counts_;
  int listener_ = -1;
  int wake_fd_ = -1;
  int epoll_fd_ = -1;
  MHD_Daemon* daemon_ = nullptr;
  std::atomic<bool> is_stopping_ = false;
  // Streams without news. They are owned by their responses.
  std::unordered_set<Stream*> waiting_;
  // POSTs that wait for their answer, by the answer's id. The library owns them.
  std::unordered_map<std::uint64_t, Exchange*> asked_;
  std::uint64_t next_id_ = 1;
  std::size_t post_bytes_ = 0;
  HttpPlaces places_{HttpPlaceLimits{}};  // connections by their descriptors
  std::shared_ptr<HttpAnswerer::Mailbox> mailbox_;
  bool has_news_ = false;
  Instant resumed_{};
  std::thread thread_;
};

}  // namespace gleaner
