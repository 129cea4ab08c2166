// Who has a place at an HTTP server, and until when their request must be complete. Pure; time
// arrives as an argument. Connections go by a number of the caller's, such as their descriptor.
//
// Invariants: at most `ordinary_max` connections have an ordinary place, at most
// `ordinary_per_address_max` of one address. Others get a spare place, which is good for one short
// answer. Beyond `spare_max` the oldest spare place is taken away, since an honest client asks
// at once. A request is complete within its time, however its bytes come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/time.hpp"

namespace gleaner {

// Which requests are answered at all. Looking takes no password: these rules keep other sites,
// which the reader's browser also shows, from reading along. Pure functions.

// From where the server may be asked.
enum class HttpReach : std::uint8_t {
  kThisMachine,  // under its loopback addresses and the name localhost
  kNetwork,      // under every address in numbers as well
  kAnyName,      // under names too: the handler asks for a secret, or all may know the answers
};

// The headers that matter, empty where a request has none.
struct RequestOrigin {
  std::string_view host;        // Host
  std::string_view origin;      // Origin
  std::string_view fetch_site;  // Sec-Fetch-Site
  std::string_view fetch_mode;  // Sec-Fetch-Mode
};

// HOST of HOST, HOST:PORT, [HOST] and [HOST]:PORT; empty when the text is none of these.
std::string_view host_of(std::string_view header);

// Empty when the request is to be answered, else the reason why not, as a sentence.
//
// A page of another site can make the browser ask this server in two ways. Under a name of its own
// that it lets point here (DNS rebinding): Host then carries that name, which is why names other
// than localhost are refused where nothing else keeps the answers. Or under our address: Origin or
// Sec-Fetch-Site then says so. It could not read the answer, but it could hold connections open.
// Following a link to the page is fine.
std::string_view refusal_of(const RequestOrigin& request, HttpReach reach);

struct HttpPlaceLimits {
  std::size_t ordinary_max = 1024;
  std::size_t ordinary_per_address_max = 128;
  std::size_t spare_max = 64;
  Millis first_head_time_max{10'000};  // from the connection to the end of the first head
  Millis next_head_time_max{30'000};   // from an answer to the end of the next head
  Millis body_time_max{30'000};        // from the head's end to the body's
};

class HttpPlaces {
 public:
  explicit HttpPlaces(const HttpPlaceLimits& limits) : limits_(limits) {}

  // `connection` is not there yet. Returns the connection that must be closed for it, if any.
  // `peer` is its address in numbers; those of one subscriber (network_of) count as one.
  std::optional<int> arrive(int connection, std::string_view peer, Instant now);
  // Connections that are not there, or no more, are passed over.
  void leave(int connection);

  [[nodiscard]] bool is_spare(int connection) const;

  // The head of a request is complete.
  void await_body(int connection, Instant now);
  // All of a request is there, or it is answered already.
  void await_answer(int connection);
  // An answer is on its way whole.
  void await_next_head(int connection, Instant now);

  // When the next request is overdue.
  [[nodiscard]] std::optional<Instant> next_due() const;
  // Connections whose request is overdue, each once: the caller closes them.
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
