// Which requests are answered at all. Looking takes no password: these rules keep other sites,
// which the reader's browser also shows, from reading along. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace gleaner {

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

}  // namespace gleaner
