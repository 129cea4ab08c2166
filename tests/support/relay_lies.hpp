// Lies of a relay about the messages that pass through it, which the protocol allows.
#pragma once

#include <map>
#include <string>

#include "common/access/standing.hpp"
#include "tests/support/lies.hpp"

namespace gleaner {

// Makes a message false; false where it is not one that this lie can be told in. Each has a state
// of its own.
struct RelayLie {
  Lie up;                  // what it sends to the master; may be empty
  Lie down;                // what it sends to a volunteer; may be empty
  bool is_of_work = true;  // it makes answers false, so an audit finds it
};

// By name. Another's key is `victim`.
std::map<std::string, RelayLie> relay_lies(const KeyId& victim);

// Sums that are wrong, of a relay that hands them on. By name.
std::map<std::string, RelayLie> lies_in_sums();

}  // namespace gleaner
