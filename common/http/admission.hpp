// Decides which connections have a place at an HTTP server, and until when their request must be
// complete. Pure; time arrives as an argument. The caller gives each connection a number, such as
// its descriptor.
//
// Invariants: at most `ordinary_max` connections have an ordinary place, at most
// `ordinary_per_address_max` of one address. Other connections get a spare place, for one short
// answer. Beyond `spare_max` the oldest spare place is taken away, since an honest client asks at
// once. A request must be complete within its time, even if its bytes trickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/time.hpp"

namespace gleaner {

// Rules about which requests are answered. Reading needs no password: the rules prevent other sites
// in the reader's browser from reading along. Pure functions.

// Addresses under which the server may be asked.
enum class HttpReach : std::uint8_t {
  kThisMachine,  // its loopback addresses and localhost
  kNetwork,      // also every numeric address, and names that only a network's owner can give
  kAnyName,      // also names: the handler asks for a secret, or the answers are public
};

// The relevant headers, empty where a request has none.
struct RequestOrigin {
  std::string_view host;        // Host
  std::string_view origin;      // Origin
  std::string_view fetch_site;  // Sec-Fetch-Site
  std::string_view fetch_mode;  // Sec-Fetch-Mode
};

// HOST of HOST, HOST:PORT, [HOST] and [HOST]:PORT; empty for other texts.
std::string_view host_of(std::string_view header);

// Empty when the request may be answered, else the reason as a sentence.
//
// A page of another site can make the browser ask this server in two ways. It can use its own name
// that points here (DNS rebinding): Host then has that name, so names other than localhost are
// refused unless kAnyName. Or it can use our address: Origin or Sec-Fetch-Site then shows that.
// Such a page could not read the answer, but it could hold connections open. Following a link to
// the page is allowed.
std::string_view refusal_of(const RequestOrigin& request, HttpReach reach);

// The token of an Authorization header of the scheme Bearer, in any case and with any blanks.
std::optional<std::string_view> bearer_token(std::string_view header);

// These paths are answered at any number of connections.
inline bool is_health(std::string_view path) {
  return path == "/healthz" || path == "/readyz";
}

struct HttpPlaceLimits {
  std::size_t ordinary_max = 1024;
  std::size_t ordinary_per_address_max = 128;
  std::size_t spare_max = 64;
  Millis first_head_time_max{10'000};  // from the connection to the end of the first head
  Millis next_head_time_max{75'000};   // from an answer to the end of the next head
  Millis body_time_max{30'000};        // from the head's end to the body's
};

class HttpPlaces {
 public:
  explicit HttpPlaces(const HttpPlaceLimits& limits) : limits_(limits) {}

  // Adds a new connection. Returns the connection to be closed for it, if any. `peer` is its
  // numeric address; addresses of one subscriber (network_of) count as one.
  std::optional<int> arrive(int connection, std::string_view peer, Instant now);
  // Ignores unknown connections.
  void leave(int connection);

  [[nodiscard]] bool is_spare(int connection) const;

  // The head of a request is complete.
  void await_body(int connection, Instant now);
  // The request is complete or already answered.
  void await_answer(int connection);
  // The answer is queued completely.
  void await_next_head(int connection, Instant now);

  // When the next request becomes overdue.
  [[nodiscard]] std::optional<Instant> next_due() const;
  // Connections with an overdue request, each once: the caller closes them.
  std::vector<int> take_overdue(Instant now);

 private:
  struct Place {
    std::string address;
    bool is_spare = false;
    std::optional<Instant> due;
  };

  void set_due(int connection, std::optional<Instant> due);

  const HttpPlaceLimits limits_;
  std::unordered_map<int, Place> places_;
  std::unordered_map<std::string, std::size_t> ordinary_;  // by address
  std::size_t ordinary_count_ = 0;
  std::list<int> spare_;  // in the order of arrival
  std::set<std::pair<Instant, int>> due_;
};

}  // namespace gleaner
