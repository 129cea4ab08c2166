// Where this machine can be reached.
#pragma once

#include <string>
#include <vector>

namespace gleaner {

// Addresses of the interfaces that are up, as text, without loopback and link-local addresses. IPv4
// comes first; within each kind, the address by which this machine reaches other networks.
std::vector<std::string> machine_addresses();

// The addresses of a name, or of an address in numbers, as this machine looks them up; empty when
// unknown. Blocks: for start-up.
std::vector<std::string> addresses_of(const std::string& host);

}  // namespace gleaner
