// The host that a join line names. Whether others reach it cannot be known here; one sentence tells
// what can.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/console/log.hpp"
#include "common/host_port.hpp"

namespace gleaner {

// This machine as others may know it; tests put others in the place.
struct MachineHosts {
  std::string name;
  std::vector<std::string> addresses;  // as machine_addresses() orders them
  // The addresses of a name, as this machine looks it up.
  std::function<std::vector<std::string>(const std::string&)> look_up;
};

MachineHosts this_machines_hosts();

struct AdvertisedHost {
  HostPort where;
  std::vector<std::string> others;  // addresses that would do as well; none where `where` was set
  LogLevel level = LogLevel::kWarning;
  std::string remark;  // what speaks against `where`; empty: nothing known
};

// `advertise` is the setting, HOST or HOST:PORT, or empty; `listens` is the address in use. Of a
// machine that listens at all of its addresses, the name is taken where it has a domain and leads
// to one of them, and otherwise the first address: a bare name is often known to its machine alone.
AdvertisedHost advertised_host(const std::string& advertise, const HostPort& listens,
                               const MachineHosts& machine);

}  // namespace gleaner
