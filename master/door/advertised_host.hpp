// The host that a join line names. The master cannot know whether others reach it; a remark tells
// what speaks against it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/console/log.hpp"
#include "common/host_port.hpp"

namespace gleaner {

// This machine's names and addresses; tests substitute others.
struct MachineHosts {
  std::string name;
  std::vector<std::string> addresses;  // as machine_addresses() orders them
  // Looks up the addresses of a name.
  std::function<std::vector<std::string>(const std::string&)> look_up;
};

MachineHosts this_machines_hosts();

struct AdvertisedHost {
  HostPort where;
  // other addresses that would do; empty if `where` was configured
  std::vector<std::string> others;
  LogLevel level = LogLevel::kWarning;
  std::string remark;  // what speaks against `where`; empty: nothing known
};

// `advertise` is the setting, HOST or HOST:PORT, or empty; `listens` is the address in use. A
// machine that listens at all addresses is named by its name if the name has a domain and leads to
// one of these addresses; otherwise by the first address, since a bare name is often known to its
// machine alone.
AdvertisedHost advertised_host(const std::string& advertise, const HostPort& listens,
                               const MachineHosts& machine);

// Addresses of the interfaces that are up, as text, without loopback and link-local ones: IPv4
// first, and of each kind the one first by which this machine reaches other networks.
std::vector<std::string> machine_addresses();

// The addresses of a name, or of an address in numbers, as this machine looks them up; empty when
// unknown. Blocks: for start-up.
std::vector<std::string> addresses_of(const std::string& host);

}  // namespace gleaner
