// Which requests are answered at all. The page has no password yet, so it is for this machine's own
// browser: these rules keep other sites, which that browser also shows, from reading it. Pure
// functions.
#pragma once

#include <string_view>

namespace gleaner {

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
// that it lets point to 127.0.0.1 (DNS rebinding): Host then carries that name. Or under our
// address: Origin or Sec-Fetch-Site then says so. It could not read the answer, but it could hold
// connections open. Following a link to the page is fine.
std::string_view refusal_of(const RequestOrigin& request);

}  // namespace gleaner
