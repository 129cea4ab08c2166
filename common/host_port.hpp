// Addresses in the user's form: HOST:PORT, with an IPv6 address in brackets. No I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace gleaner {

struct HostPort {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// Accepts "example.org:7070", "127.0.0.1:0", "[::1]:7070". Errors quote the text and show a valid
// form.
Result<HostPort> parse_host_port(std::string_view text);

// Accepts the same, or a host without a port; an IPv6 address then needs no brackets. The port is 0
// if missing.
Result<HostPort> parse_host(std::string_view text);

// The sentence of a connection's error without `where` at its beginning.
std::string cause_of(const std::string& sentence, const std::string& where);

// Whether the text alone shows that a host is this machine: localhost, an address of 127.0.0.0/8 in
// its usual form, or ::1.
bool is_loopback(std::string_view host);

// Whether a host is a numeric address, not a name.
bool is_numeric(std::string_view host);

// The part of a numeric address that belongs to one subscriber: a whole IPv4 address, or the first
// 64 bits of an IPv6 address. Other text is returned unchanged.
std::string network_of(std::string_view address);

// Whether it means all addresses of this machine: 0.0.0.0 or ::.
inline bool is_any_address(std::string_view host) {
  return host == "0.0.0.0" || host == "::";
}

// The form that parse_host_port accepts.
std::string to_text(const HostPort& address);

}  // namespace gleaner
