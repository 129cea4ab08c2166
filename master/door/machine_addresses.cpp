#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "master/door/advertised_host.hpp"

namespace gleaner {
namespace {

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address.sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  } else if (address.sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  }
  const bool has_text =
      bytes != nullptr && inet_ntop(address.sa_family, bytes, text.data(), text.size()) != nullptr;
  return has_text ? text.data() : "";
}

// Whether only machines on the interface's own network can use the address.
bool is_link_local(const sockaddr& address) {
  if (address.sa_family == AF_INET6) {
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  return (ntohl(v4.sin_addr.s_addr) >> 16) == 0xa9fe;
}

// The address from which packets to `far` would leave, without sending any; empty without a route.
std::string source_towards(const sockaddr& far, socklen_t size) {
  const int handle = socket(far.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return {};
  sockaddr_storage near{};
  socklen_t near_size = sizeof(near);
  const bool is_known = connect(handle, &far, size) == 0 &&
                        getsockname(handle, reinterpret_cast<sockaddr*>(&near), &near_size) == 0;
  close(handle);
  return is_known ? text_of(reinterpret_cast<const sockaddr&>(near)) : std::string();
}

// Routes are asked towards addresses reserved for documentation, which no machine has.
std::array<std::string, 2> outward_addresses() {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(9);
  inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
  return {source_towards(reinterpret_cast<const sockaddr&>(v4), sizeof(v4)),
          source_towards(reinterpret_cast<const sockaddr&>(v6), sizeof(v6))};
}

}  // namespace

std::vector<std::string> machine_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, &freeifaddrs);
  std::vector<std::string> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
      const bool is_up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
      if (is_up && !is_link_local(*one->ifa_addr)) found.push_back(text_of(*one->ifa_addr));
    }
  }
  const auto outward = outward_addresses();
  const auto rank = [&outward](const std::string& address) {
    const int is_v6 = address.find(':') == std::string::npos ? 0 : 1;
    return 2 * is_v6 + (std::ranges::count(outward, address) > 0 ? 0 : 1);
  };
  std::ranges::stable_sort(found, {}, rank);
  return found;
}

std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &first) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(first, &freeaddrinfo);
  std::vector<std::string> found;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    found.push_back(text_of(*one->ai_addr));
  }
  return found;
}

}  // namespace gleaner
