#include "common/http/admission.hpp"

#include <algorithm>

#include "common/host_port.hpp"

namespace gleaner {
namespace {

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Whether no stranger can own the name and make it point here: it is one word, or of a network
// without a registry.
bool is_private_name(std::string_view host) {
  constexpr std::string_view kSuffixes[] = {".local", ".lan", ".internal", ".home.arpa",
                                            ".localhost"};
  return !host.empty() && (host.find('.') == std::string_view::npos ||
                           std::ranges::any_of(kSuffixes, [&](std::string_view suffix) {
                             return host.ends_with(suffix);
                           }));
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
    return "This page answers only under this machine's own names: localhost, 127.0.0.1 "
           "or [::1]; behind a proxy, gleaner serve takes --token-file or --public.";
  }
  if (reach == HttpReach::kNetwork && !is_loopback(host) && !is_numeric(host) &&
      !is_private_name(host)) {
    return "This page answers only under localhost, numeric addresses, such as 192.168.1.5, and "
           "names of a network's own, such as master or master.local.";
  }
  // A browser says itself whether a page is of the same origin; it cannot know what a proxy that
  // ends TLS makes of Host. Older ones leave the comparison to us.
  const std::size_t scheme = request.origin.starts_with("https://") ? 8 : 7;
  const bool has_scheme = scheme == 8 || request.origin.starts_with("http://");
  const bool is_foreign = !request.origin.empty() && request.fetch_site != "same-origin" &&
                          (!has_scheme || request.origin.substr(scheme) != request.host);
  const bool is_sibling = request.fetch_site == "cross-site" || request.fetch_site == "same-site";
  if (is_foreign || (is_sibling && request.fetch_mode != "navigate")) {
    return "Pages of other origins read nothing here.";
  }
  return {};
}

std::optional<std::string_view> bearer_token(std::string_view header) {
  constexpr std::string_view kScheme = "bearer";
  const auto is_same = [](char a, char b) { return (a | 32) == b; };
  if (!std::ranges::equal(header.substr(0, kScheme.size()), kScheme, is_same)) return std::nullopt;
  header.remove_prefix(kScheme.size());
  const std::size_t begin = header.find_first_not_of(" \t");
  if (begin == 0 || begin == std::string_view::npos) return std::nullopt;
  return header.substr(begin, header.find_last_not_of(" \t") + 1 - begin);
}

std::optional<int> HttpPlaces::arrive(int connection, std::string_view peer, Instant now) {
  const std::string address = network_of(peer);
  std::optional<int> turned_out;
  std::size_t& of_address = ordinary_[address];
  const bool is_spare =
      ordinary_count_ >= limits_.ordinary_max || of_address >= limits_.ordinary_per_address_max;
  if (is_spare) {
    if (of_address == 0) ordinary_.erase(address);
    if (spare_.size() >= limits_.spare_max) {
      turned_out = spare_.front();
      spare_.pop_front();
      set_due(*turned_out, std::nullopt);
    }
    spare_.push_back(connection);
  } else {
    ++of_address;
    ++ordinary_count_;
  }
  places_[connection] = {address, is_spare, std::nullopt};
  set_due(connection, now + limits_.first_head_time_max);
  return turned_out;
}

void HttpPlaces::leave(int connection) {
  const auto found = places_.find(connection);
  if (found == places_.end()) return;
  set_due(connection, std::nullopt);
  if (found->second.is_spare) {
    spare_.remove(connection);
  } else {
    --ordinary_count_;
    const auto of_address = ordinary_.find(found->second.address);
    if (--of_address->second == 0) ordinary_.erase(of_address);
  }
  places_.erase(found);
}

bool HttpPlaces::is_spare(int connection) const {
  const auto found = places_.find(connection);
  return found != places_.end() && found->second.is_spare;
}

void HttpPlaces::await_body(int connection, Instant now) {
  set_due(connection, now + limits_.body_time_max);
}

void HttpPlaces::await_answer(int connection) {
  set_due(connection, std::nullopt);
}

void HttpPlaces::await_next_head(int connection, Instant now) {
  set_due(connection, now + limits_.next_head_time_max);
}

std::optional<Instant> HttpPlaces::next_due() const {
  return due_.empty() ? std::nullopt : std::optional(due_.begin()->first);
}

std::vector<int> HttpPlaces::take_overdue(Instant now) {
  std::vector<int> overdue;
  while (!due_.empty() && due_.begin()->first <= now) {
    overdue.push_back(due_.begin()->second);
    set_due(overdue.back(), std::nullopt);
  }
  return overdue;
}

void HttpPlaces::set_due(int connection, std::optional<Instant> due) {
  const auto found = places_.find(connection);
  if (found == places_.end()) return;
  if (found->second.due) due_.erase({*found->second.due, connection});
  found->second.due = due;
  if (due) due_.insert({*due, connection});
}

}  // namespace gleaner
