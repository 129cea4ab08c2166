// The choice of a proxy by the variables of the environment.
#include "common/net/proxy.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace gleaner {
namespace {

bool goes_straight(const std::string& host, const std::string& no_proxy) {
  const std::map<std::string, std::string> variables = {{"https_proxy", "http://proxy:3128"},
                                                        {"no_proxy", no_proxy}};
  const auto proxy = proxy_for({host, 7070}, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  REQUIRE(proxy);
  return !*proxy;
}

}  // namespace

TEST_CASE("proxy: no_proxy names hosts, domains, addresses and networks", "[proxy]") {
  const std::string list = "lab, .example.org,10.1.0.0/16,192.168.7.9, fd00::/8";
  for (const char* host : {"lab", "a.lab", "example.org", "x.example.org", "10.1.255.1",
                           "192.168.7.9", "fd12::1", "127.0.0.1", "::1"}) {
    INFO(host);
    REQUIRE(goes_straight(host, list));
  }
  for (const char* host : {"collab", "example.com", "10.2.0.1", "192.168.7.90", "fe80::1"}) {
    INFO(host);
    REQUIRE_FALSE(goes_straight(host, list));
  }
  REQUIRE(goes_straight("anywhere", "*"));
  REQUIRE_FALSE(goes_straight("10.1.0.1", "10.1.0.0/x"));
  REQUIRE_FALSE(goes_straight("10.1.0.1", "10.1.0.0/99"));
}

}  // namespace gleaner
