#include "common/host_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "common/os/sockets.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kHostBytesMax = 253;  // the longest DNS name

Error unusable(std::string_view text, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}': {}; an address looks like 192.168.1.5:7070, name.example:7070 or "
                           "[::1]:7070",
                           text, why)};
}

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return unusable(text, "the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (!host.empty() && host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') return unusable(text, "the brackets do not match");
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) {
      return unusable(text, "brackets are for IPv6 addresses");
    }
  } else if (host.find(':') != std::string_view::npos) {
    return unusable(text, "an IPv6 address stands in brackets");
  }
  if (host.empty()) return unusable(text, "the host is missing");
  if (host.size() > kHostBytesMax || host.find_first_of("[]/ \t@") != std::string_view::npos) {
    return unusable(text, "the host is no name or address");
  }
  HostPort address{std::string(host), 0};
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (parsed.ec != std::errc{} || parsed.ptr != port.data() + port.size()) {
    return unusable(text, "the port is no number from 0 to 65535");
  }
  return address;
}

Result<HostPort> parse_host(std::string_view text) {
  const bool is_ipv6 = std::ranges::count(text, ':') > 1 && !text.starts_with('[');
  if (is_ipv6) return parse_host_port(fmt::format("[{}]:0", text));
  if (text.ends_with(']') || text.find(':') == std::string_view::npos) {
    return parse_host_port(fmt::format("{}:0", text));
  }
  return parse_host_port(text);
}

std::string cause_of(const std::string& sentence, const std::string& where) {
  const std::string begin = where + ": ";
  return sentence.starts_with(begin) ? sentence.substr(begin.size()) : sentence;
}

bool is_numeric(std::string_view host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  const std::string text(host);
  return inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

std::string network_of(std::string_view address) {
  std::string text(address);
  in6_addr bits{};
  if (inet_pton(AF_INET6, text.c_str(), &bits) != 1 || IN6_IS_ADDR_V4MAPPED(&bits)) return text;
  std::fill(std::begin(bits.s6_addr) + 8, std::end(bits.s6_addr), std::uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> network{};
  return inet_ntop(AF_INET6, &bits, network.data(), network.size());
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  // Four numbers from 0 to 255, the first of them 127.
  int parts = 0;
  while (parts < 4) {
    const std::size_t dot = host.find('.');
    const std::string_view part = host.substr(0, dot);
    std::uint8_t number = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != part.data() + part.size()) return false;
    if (parts == 0 && number != 127) return false;
    ++parts;
    if (dot == std::string_view::npos) return parts == 4;
    host.remove_prefix(dot + 1);
  }
  return false;
}

std::string to_text(const HostPort& address) {
  if (address.host.find(':') != std::string::npos) {
    return fmt::format("[{}]:{}", address.host, address.port);
  }
  return fmt::format("{}:{}", address.host, address.port);
}

}  // namespace gleaner
