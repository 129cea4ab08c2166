#include "master/door/advertised_host.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/machine_facts.hpp"

namespace gleaner {
namespace {

bool is_among(const std::string& address, const std::vector<std::string>& all) {
  return std::ranges::find(all, address) != all.end();
}

// Finds reasons against a host that somebody chose.
void check_host(AdvertisedHost& host, const MachineHosts& machine) {
  const std::string& name = host.where.host;
  const std::vector<std::string> found = machine.look_up(name);
  if (found.empty()) {
    host.remark = fmt::format(
        "the join line names {}, and no address of it is known here: volunteers must be able to "
        "look it up, or --advertise must name another host",
        name);
  } else if (std::ranges::all_of(found, [](const auto& one) { return is_loopback(one); })) {
    host.remark = fmt::format(
        "the join line names {}, which leads each machine to itself ({}): only volunteers on this "
        "machine can use it, unless others look that name up elsewhere; see --advertise",
        name, found.front());
  } else if (!std::ranges::any_of(
                 found, [&](const auto& one) { return is_among(one, machine.addresses); })) {
    host.level = LogLevel::kInfo;
    host.remark = fmt::format(
        "the join line names {} ({}), which is no address of this machine: somebody there, such as "
        "a router, must pass port {} on to it",
        name, found.front(), host.where.port);
  }
}

}  // namespace

MachineHosts this_machines_hosts() {
  return {machine_facts().host_name, machine_addresses(), &addresses_of};
}

AdvertisedHost advertised_host(const std::string& advertise, const HostPort& listens,
                               const MachineHosts& machine) {
  AdvertisedHost host;
  host.where = listens;
  if (!advertise.empty()) {
    if (const auto chosen = parse_host(advertise)) host.where = *chosen;
    if (host.where.port == 0) host.where.port = listens.port;
    check_host(host, machine);
    return host;
  }
  if (is_loopback(listens.host)) {
    host.remark = fmt::format(
        "the join line works on this machine alone, for the master listens on {}: with --listen "
        "0.0.0.0:{} other machines reach it",
        listens.host, listens.port);
    host.level = LogLevel::kInfo;
    return host;
  }
  if (!is_any_address(listens.host)) return host;
  const bool has_domain = machine.name.find('.') != std::string::npos;
  const std::vector<std::string> named =
      has_domain ? machine.look_up(machine.name) : std::vector<std::string>();
  const bool is_known =
      std::ranges::any_of(named, [&](const auto& one) { return is_among(one, machine.addresses); });
  host.others = machine.addresses;
  if (is_known || machine.addresses.empty()) {
    host.where.host = machine.name;
  } else {
    host.where.host = machine.addresses.front();
    host.others.erase(host.others.begin());
  }
  if (machine.addresses.empty()) {
    host.remark = fmt::format(
        "the join line names {}, for this machine has no address on a network: --advertise HOST "
        "names what others reach",
        machine.name);
  }
  return host;
}

}  // namespace gleaner
