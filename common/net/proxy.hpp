// A proxy between this machine and the internet, as programs are told of one: by the variables
// https_proxy, all_proxy and no_proxy, in small or large letters.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <functional>
#include <optional>
#include <string>

#include "common/host_port.hpp"
#include "common/result.hpp"

namespace gleaner {

struct Proxy {
  HostPort where;
  bool is_socks = false;  // version 5; otherwise HTTP, by CONNECT
  std::string user;       // "USER:PASSWORD"; empty: none
};

// The proxy for connections to `target`; nullopt: straight, as to this machine itself.
Result<std::optional<Proxy>> proxy_for(const HostPort& target,
                                       const std::function<const char*(const char*)>& environment);

// Asks the proxy at the other end of `socket` to connect to `target`.
asio::awaitable<Result<void>> connect_through(asio::ip::tcp::socket& socket, Proxy proxy,
                                              HostPort target);

}  // namespace gleaner
