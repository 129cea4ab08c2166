// The host that join lines name, and the remarks on it.
#include "master/door/advertised_host.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Hosts = std::vector<std::string>;

// A machine in two networks whose names lead to `named`.
MachineHosts machine(const std::string& name, const Hosts& named) {
  return {name, {"192.168.1.5", "10.0.0.3"}, [named](const std::string&) { return named; }};
}

const HostPort kEverywhere{"0.0.0.0", 7070};

}  // namespace

TEST_CASE("advertised host: a bare name gives way to an address that others reach", "[access]") {
  const AdvertisedHost host = advertised_host("", kEverywhere, machine("alpha", {"127.0.1.1"}));
  CHECK(host.where == HostPort{"192.168.1.5", 7070});
  CHECK(host.others == Hosts{"10.0.0.3"});
  CHECK(host.remark.empty());
}

TEST_CASE("advertised host: a name with a domain is kept if it leads here", "[access]") {
  const auto here = advertised_host("", kEverywhere, machine("a.example", {"10.0.0.3"}));
  CHECK(here.where == HostPort{"a.example", 7070});
  CHECK(here.others == Hosts{"192.168.1.5", "10.0.0.3"});
  const auto elsewhere = advertised_host("", kEverywhere, machine("a.example", {"192.0.2.9"}));
  CHECK(elsewhere.where.host == "192.168.1.5");
}

TEST_CASE("advertised host: one address listens, so the line names it", "[access]") {
  CHECK(advertised_host("", {"10.0.0.3", 1}, machine("alpha", {})).where ==
        HostPort{"10.0.0.3", 1});
  const auto alone = advertised_host("", {"127.0.0.1", 7070}, machine("alpha", {}));
  CHECK(alone.where.host == "127.0.0.1");
  CHECK(alone.level == LogLevel::kInfo);
  CHECK_THAT(alone.remark, Contains("with --listen 0.0.0.0:7070 other machines reach it"));
}

TEST_CASE("advertised host: a machine without a network says so", "[access]") {
  const auto host =
      advertised_host("", kEverywhere, {"alpha", {}, [](const auto&) { return Hosts(); }});
  CHECK(host.where.host == "alpha");
  CHECK_THAT(host.remark, Contains("has no address on a network"));
}

TEST_CASE("advertised host: what was chosen is taken, and checked in words", "[access]") {
  const auto sound = advertised_host("a.example", kEverywhere, machine("alpha", {"10.0.0.3"}));
  CHECK(sound.where == HostPort{"a.example", 7070});
  CHECK(sound.others.empty());
  CHECK(sound.remark.empty());
  CHECK(advertised_host("a.example:80", kEverywhere, machine("alpha", {})).where.port == 80);
  CHECK(advertised_host("2001:db8::7", kEverywhere, machine("alpha", {})).where ==
        HostPort{"2001:db8::7", 7070});

  const auto unknown = advertised_host("a.example", kEverywhere, machine("alpha", {}));
  CHECK(unknown.level == LogLevel::kWarning);
  CHECK_THAT(unknown.remark, Contains("no address of it is known here"));
  const auto own = advertised_host("alpha", kEverywhere, machine("alpha", {"127.0.1.1"}));
  CHECK(own.level == LogLevel::kWarning);
  CHECK_THAT(own.remark, Contains("leads each machine to itself (127.0.1.1)"));
  const auto router = advertised_host("192.0.2.9", kEverywhere, machine("alpha", {"192.0.2.9"}));
  CHECK(router.level == LogLevel::kInfo);
  CHECK_THAT(router.remark, Contains("must pass port 7070 on to it"));
}

TEST_CASE("advertised host: this machine's own addresses lead elsewhere than back", "[access]") {
  for (const std::string& address : machine_addresses()) {
    INFO(address);
    CHECK(is_numeric(address));
    CHECK_FALSE(is_loopback(address));
  }
  CHECK(addresses_of("127.0.0.1") == Hosts{"127.0.0.1"});
}

}  // namespace gleaner
