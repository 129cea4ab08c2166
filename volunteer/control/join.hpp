// gleaner-volunteer join: a machine is lent from now on, by the service that Debian's package
// brings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner::volunteer {

// The machine as joining sees and changes it; tests put others in the place.
struct JoinPlace {
  bool is_root = false;
  bool has_systemd = false;  // as the machine's init, and running
  bool has_unit = false;     // gleaner-volunteer.service is installed
  // Runs a program of the PATH and returns whether it succeeded.
  std::function<bool(const std::vector<std::string>&)> run;
};

JoinPlace this_machine();

// The file that the unit passes to the service as a credential.
inline constexpr char kLineFile[] = "/etc/gleaner/volunteer.line";

// Keeps `line` in `file`, readable by its owner alone, and starts the unit now and with the
// machine. Where it cannot do one of them, it prints the command that does. An empty `line` is read
// from standard input, where no history of commands keeps it.
Result<std::string> join(std::string line, const std::string& file, const JoinPlace& place);

}  // namespace gleaner::volunteer
