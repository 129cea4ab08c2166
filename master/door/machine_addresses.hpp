// Where this machine can be reached.
#pragma once

#include <string>
#include <vector>

namespace gleaner {

// Addresses of the interfaces that are up, as text, without loopback and link-local ones: IPv4
// first, and of each kind the one first by which this machine reaches other networks.
std::vector<std::string> machine_addresses();

// The addresses that a name or an address in numbers has on this machine; none where it is unknown.
// Blocks while it is looked up: for start-up.
std::vector<std::string> addresses_of(const std::string& host);

}  // namespace gleaner
