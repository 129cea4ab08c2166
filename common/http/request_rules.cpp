#include "common/http/request_rules.hpp"

#include "common/host_port.hpp"

namespace gleaner {
namespace {

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string_view host_of(std::string_view header) {
  std::string_view rest;
  std::string_view host;
  if (header.starts_with('[')) {
    const std::size_t end = header.find(']');
    if (end == std::string_view::npos) return {};
    host = header.substr(1, end - 1);
    rest = header.substr(end + 1);
    if (host.find(':') == std::string_view::npos) return {};
  } else {
    const std::size_t colon = header.find(':');
    host = header.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : header.substr(colon);
  }
  if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return {};
  return host;
}

std::string_view refusal_of(const RequestOrigin& request, HttpReach reach) {
  const std::string_view host = host_of(request.host);
  if (!is_loopback(host) && reach == HttpReach::kThisMachine) {
    return "This page answers under the names of this machine itself alone: localhost, 127.0.0.1 "
           "or [::1].";
  }
  if (reach == HttpReach::kNetwork && !is_loopback(host) && !is_numeric(host)) {
    return "This page answers under localhost and addresses in numbers alone, such as 192.168.1.5.";
  }
  constexpr std::string_view kScheme = "http://";
  const bool is_foreign =
      !request.origin.empty() && (!request.origin.starts_with(kScheme) ||
                                  request.origin.substr(kScheme.size()) != request.host);
  const bool is_sibling = request.fetch_site == "cross-site" || request.fetch_site == "same-site";
  if (is_foreign || (is_sibling && request.fetch_mode != "navigate")) {
    return "Pages of other origins read nothing here.";
  }
  return {};
}

}  // namespace gleaner
