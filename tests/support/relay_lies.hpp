// Lies of a relay in messages that it passes, which the protocol allows.
#pragma once

#include <map>
#include <string>

#include "common/access/standing.hpp"
#include "tests/support/lies.hpp"

namespace gleaner {

// A lie with its own state.
struct RelayLie {
  Lie up;                  // in messages to the master; may be empty
  Lie down;                // in messages to a volunteer; may be empty
  bool is_of_work = true;  // it makes answers false, so audits find it
};

// By name. `victim` is another volunteer's key.
std::map<std::string, RelayLie> relay_lies(const KeyId& victim);

// Wrong sums, by name.
std::map<std::string, RelayLie> lies_in_sums();

}  // namespace gleaner
