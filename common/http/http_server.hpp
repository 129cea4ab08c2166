// An HTTP server for many slow readers: one thread, one epoll set, no thread or growing buffer per
// reader. Ordinary answers are complete texts that readers share. A stream (server-sent events)
// requests its next piece when the reader has taken the last one, so a slow reader's state is only
// a position and a shared piece; without news its connection is suspended and costs nothing. The
// body of a POST is received completely, up to a limit, and passed to a handler that answers on
// another thread; the connection is suspended meanwhile.
//
// When an address has all its connections, or all connections are in use, a further connection is
// answered with status 503 and closed, except that /healthz and /readyz are answered as always.
//
// One thread constructs and destroys the server; any thread may call wake(); the handler is called
// on the server's own thread only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
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

// A reader that takes nothing for this time is closed. HttpPlaceLimits has the times of requests.
inline constexpr unsigned kHttpSilenceSeconds = 30;
// A connection between two requests; longer than a proxy keeps one (nginx: 60 s), which would
// otherwise send a request into a closing one.
inline constexpr unsigned kHttpIdleSeconds = 80;
// Memory per connection for its request and its reply's headers.
inline constexpr std::size_t kHttpConnectionBytes = std::size_t{16} << 10;

// Largest body of a POST; and of all bodies and their unsent answers together.
inline constexpr std::size_t kHttpPostBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kHttpPostBytesAllMax = std::size_t{64} << 20;

struct HttpRequest {
  std::string_view path;
  std::string_view accept;         // header Accept
  std::string_view last_event_id;  // header Last-Event-ID
  std::string_view if_none_match;  // header If-None-Match
  // Header X-Gleaner-Key, else from Authorization: the token of Bearer or the password of Basic.
  std::string_view page_key;
  bool is_local = false;  // from this machine, under a loopback address or localhost
  // Value of a key in the query; empty when missing.
  std::function<std::string_view(const char* key)> query;
};

// Position of a stream's reader.
struct StreamPosition {
  std::uint64_t version = 0;  // of the state that was sent last
  std::uint64_t event = 0;    // number of the first event not sent yet
  // The reader's, as in HttpRequest.
  std::string page_key{};
  bool is_local = false;
  bool is_over = false;  // set by next_piece() at the stream's end
};

inline constexpr const char* kHttpText = "text/plain; charset=utf-8";
inline constexpr const char* kHttpJson = "application/json";

struct HttpReply {
  unsigned status = 200;
  const char* type = kHttpText;
  SharedText body;
  std::string etag;                          // empty: the browser must not cache the reply
  std::optional<StreamPosition> stream;      // instead of a body: a stream from this position
  const char* allow = "GET, HEAD, OPTIONS";  // for status 405
  unsigned retry_after_s = 1;                // for status 429 and 503
};

HttpReply text_reply(unsigned status, const char* type, std::string text);

// Answers one POST: once, from any thread, even after the server is gone.
class HttpAnswerer {
 public:
  void operator()(HttpReply reply) const;

 private:
  friend class HttpServer;
  friend struct MhdCalls;

  // Carries answers to the server's thread.
  struct Mailbox;

  std::shared_ptr<Mailbox> mailbox_;
  std::uint64_t id_ = 0;
};

struct HttpPost {
  std::string path;
  std::string accept;  // header Accept
  std::map<std::string, std::string> query;
  std::string body;       // at most kHttpPostBytesMax
  std::string page_key;   // as HttpRequest's; no page of another origin can send it
  bool is_local = false;  // as HttpRequest's
  HttpAnswerer answer;
};

struct HttpHandler {
  std::function<HttpReply(const HttpRequest&)> answer;
  // Returns the stream's next piece and advances `position`; null without news.
  std::function<SharedText(StreamPosition& position)> next_piece;
  // Whether the path accepts bodies; unset: no path does.
  std::function<bool(std::string_view path)> takes_post;
  // Must return quickly: other threads do the work.
  std::function<void(HttpPost post)> post;
  // Whether pages of other origins may ask: the answers are public, or take a secret that no
  // browser adds by itself.
  bool is_for_other_origins = false;
  // Called after wake(), before the streams are asked.
  std::function<void()> on_wake;
};

// Counted since the start; read by the handler on the server's thread.
struct HttpCounts {
  std::uint64_t answered = 0;     // replies with status 2xx and 3xx
  std::uint64_t refused = 0;      // 4xx
  std::uint64_t failed = 0;       // 5xx
  std::uint64_t connections = 0;  // open now
  std::uint64_t streams = 0;      // open connections that are streams
};

class HttpServer {
 public:
  // Listens. `address` is a loopback address of this machine, or localhost; with kNetwork and
  // kAnyName also any other numeric address of it. Port 0 selects a free port. kIo when the port is
  // taken or not permitted.
  static Result<std::unique_ptr<HttpServer>> prepare(const HostPort& address, HttpHandler handler,
                                                     HttpReach reach = HttpReach::kThisMachine);
  // Begins to serve.
  void start();
  // Gives readers a moment to take the rest, then closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the actual port.
  [[nodiscard]] const HostPort& address() const { return address_; }

  // Announces news: soon the handler's on_wake() is called, then streams are asked for more. Never
  // waits.
  void wake();

  // Call on the server's thread.
  [[nodiscard]] HttpCounts counts() const;

  // State of a stream and of a POST; internal.
  struct Stream;
  struct Exchange;

 private:
  friend struct MhdCalls;  // callbacks of libmicrohttpd

  HttpServer(HostPort address, HttpHandler handler, HttpReach reach);
  Result<void> listen();
  void serve();
  void resume_streams();
  // Resumes POSTs that have an answer; with `is_end` also all others.
  void deliver_answers(bool is_end);
  // Milliseconds until the next deadline; negative: none.
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

// The pages' files as HTTP replies. On the HTTP server's thread only.

// A file of a page, which the build embeds in the program: see gleaner_page() in CMakeLists.txt.
struct PageAsset {
  std::string_view path;  // "/chart.js"
  const char* type;       // for the header Content-Type
  std::string_view content;
};

// Files of all pages: style sheet, icon, tiles of figures, number formats.
std::span<const PageAsset> shared_page_assets();

// The file with this path in `own`, else in shared_page_assets(); nullopt when neither has it.
std::optional<HttpReply> asset_reply(std::string_view path, std::span<const PageAsset> own);

}  // namespace gleaner
