#include "common/host_port.hpp"

#include <catch2/catch.hpp>

namespace gleaner {

TEST_CASE("host and port: the usual forms are accepted", "[host_port]") {
  REQUIRE(parse_host_port("127.0.0.1:7070").value() == HostPort{"127.0.0.1", 7070});
  REQUIRE(parse_host_port("name.example:0").value() == HostPort{"name.example", 0});
  REQUIRE(parse_host_port("[::1]:65535").value() == HostPort{"::1", 65535});
}

TEST_CASE("host and port: what is printed can be parsed", "[host_port]") {
  for (const char* text : {"127.0.0.1:7070", "[fe80::1]:1", "h:2"}) {
    REQUIRE(to_text(parse_host_port(text).value()) == text);
  }
}

TEST_CASE("host and port: a host alone is accepted where a port may be missing", "[host_port]") {
  REQUIRE(parse_host("name.example").value() == HostPort{"name.example", 0});
  REQUIRE(parse_host("name.example:7").value() == HostPort{"name.example", 7});
  REQUIRE(parse_host("fd00::1").value() == HostPort{"fd00::1", 0});
  REQUIRE(parse_host("[fd00::1]").value() == HostPort{"fd00::1", 0});
  REQUIRE(parse_host("[fd00::1]:7").value() == HostPort{"fd00::1", 7});
  for (const char* text : {"", "http://h", "a b", "h:x"}) REQUIRE_FALSE(parse_host(text).ok());
}

TEST_CASE("host and port: anything else is refused with a sentence that helps", "[host_port]") {
  const std::pair<const char*, const char*> cases[] = {
      {"localhost", "the port is missing"},
      {"", "the port is missing"},
      {":7070", "the host is missing"},
      {"::1:7070", "an IPv6 address stands in brackets"},
      {"[::1:7070", "the brackets do not match"},
      {"[]:1", "the brackets do not match"},
      {"[name]:1", "brackets are for IPv6 addresses"},
      {"h:65536", "the port is no number from 0 to 65535"},
      {"h:-1", "the port is no number from 0 to 65535"},
      {"h:", "the port is no number from 0 to 65535"},
      {"h:7o", "the port is no number from 0 to 65535"},
      {"http//h:80", "the host is no name or address"},
      {"a b:80", "the host is no name or address"}};
  for (const auto& [text, why] : cases) {
    INFO(text);
    const auto parsed = parse_host_port(text);
    REQUIRE_FALSE(parsed.ok());
    REQUIRE(parsed.error().code == ErrorCode::kInvalidArgument);
    REQUIRE(parsed.error().message.find(why) != std::string::npos);
    REQUIRE(parsed.error().message.find("[::1]:7070") != std::string::npos);
  }
}

TEST_CASE("host and port: who has 64 bits of IPv6 is one subscriber", "[host_port]") {
  REQUIRE(network_of("2001:db8:1:2:3:4:5:6") == network_of("2001:db8:1:2::7"));
  REQUIRE(network_of("2001:db8:1:2::7") != network_of("2001:db8:1:3::7"));
  REQUIRE(network_of("192.0.2.1") == "192.0.2.1");
  REQUIRE(network_of("::ffff:192.0.2.1") != network_of("::ffff:192.0.2.2"));
  REQUIRE(network_of("unknown") == "unknown");
}

}  // namespace gleaner
