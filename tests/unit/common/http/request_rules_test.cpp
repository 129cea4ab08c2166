#include <catch2/catch.hpp>

#include "common/host_port.hpp"
#include "common/http/admission.hpp"

namespace gleaner {

TEST_CASE("request rules: names of this machine are answered, with and without a port", "[http]") {
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1", "127.0.0.1:1",
                           "127.9.8.7:80", "[::1]", "[::1]:65535"}) {
    INFO(host);
    REQUIRE(refusal_of({host, {}, {}, {}}, HttpReach::kThisMachine).empty());
  }
}

TEST_CASE("request rules: a name that is let point here is refused, whatever it looks like",
          "[http]") {
  for (const char* host : {"",
                           "evil.example",
                           "evil.example:8080",
                           "127.0.0.1.evil.example",
                           "localhost.evil.example",
                           "127.0.0.1:80@evil.example",
                           "127.0.0",
                           "127.0.0.1.1",
                           "127.0.0.256",
                           "128.0.0.1",
                           "0.0.0.0",
                           "[::1",
                           "[::1]x",
                           "[::2]",
                           "[localhost]",
                           "localhost:",
                           "localhost:x",
                           "localhost:123456",
                           "LOCALHOST.",
                           "127.0.0.1 ",
                           " 127.0.0.1",
                           "127..0.1",
                           "+127.0.0.1"}) {
    INFO(host);
    REQUIRE_FALSE(refusal_of({host, {}, {}, {}}, HttpReach::kThisMachine).empty());
  }
}

TEST_CASE("request rules: on a network, addresses and names that no stranger can own are answered",
          "[http]") {
  for (const char* host : {"192.168.1.5", "10.0.0.1:8091", "[fe80::1]:80", "localhost:1",
                           "master:8080", "master.local", "run.default.svc.cluster.local:80"}) {
    INFO(host);
    REQUIRE(refusal_of({host, {}, {}, {}}, HttpReach::kNetwork).empty());
    REQUIRE_FALSE(refusal_of({host, "http://evil.example", {}, {}}, HttpReach::kNetwork).empty());
  }
  for (const char* host : {"", "evil.example", "192.168.1.5.evil.example", "1.2.3", "[1.2.3.4]",
                           "evil-local.example", "master.evil.example"}) {
    INFO(host);
    REQUIRE_FALSE(refusal_of({host, {}, {}, {}}, HttpReach::kNetwork).empty());
  }
}

TEST_CASE("request rules: where a secret is asked for, every name is answered and no other origin",
          "[http]") {
  for (const char* host : {"", "gleaner.example", "gleaner.example:8090", "192.168.1.5"}) {
    INFO(host);
    REQUIRE(refusal_of({host, {}, {}, {}}, HttpReach::kAnyName).empty());
    REQUIRE_FALSE(refusal_of({host, "http://evil.example", {}, {}}, HttpReach::kAnyName).empty());
  }
}

TEST_CASE("request rules: pages of other origins are refused, links to the page are not",
          "[http]") {
  const char* const host = "127.0.0.1:8080";
  REQUIRE(
      refusal_of({host, "http://127.0.0.1:8080", "same-origin", "cors"}, HttpReach::kThisMachine)
          .empty());
  REQUIRE(refusal_of({host, {}, "none", "navigate"}, HttpReach::kThisMachine).empty());
  REQUIRE(refusal_of({host, {}, "cross-site", "navigate"}, HttpReach::kThisMachine).empty());
  REQUIRE_FALSE(refusal_of({host, {}, "cross-site", "no-cors"}, HttpReach::kThisMachine).empty());
  REQUIRE_FALSE(refusal_of({host, {}, "same-site", "cors"}, HttpReach::kThisMachine).empty());
  // A proxy that ends TLS: the browser's word counts, or the same name in Host.
  REQUIRE(refusal_of({host, "https://name.example", "same-origin", "cors"}, HttpReach::kThisMachine)
              .empty());
  REQUIRE(
      refusal_of({"name.example", "https://name.example", {}, {}}, HttpReach::kAnyName).empty());
  for (const char* origin :
       {"http://127.0.0.1:8081", "http://localhost:8080", "null", "https://name.example",
        "ftp://127.0.0.1:8080", "http://evil.example"}) {
    INFO(origin);
    REQUIRE_FALSE(refusal_of({host, origin, {}, {}}, HttpReach::kThisMachine).empty());
  }
}

TEST_CASE("request rules: a token is read however its header is written", "[http]") {
  for (const char* shown : {"Bearer T", "bearer  T", "BEARER\tT "}) {
    INFO(shown);
    REQUIRE(bearer_token(shown) == "T");
  }
  for (const char* shown : {"", "T", "BearerT", "Basic T", "Bearer", "Bearer  "}) {
    INFO(shown);
    REQUIRE_FALSE(bearer_token(shown).has_value());
  }
}

}  // namespace gleaner
