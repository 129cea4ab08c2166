// gleaner-volunteer join: a machine is lent from now on, by the service that Debian's package
// brings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/access/master_address.hpp"
#include "common/result.hpp"

namespace gleaner::volunteer {

// Whether the master answers; an error says why it does not.
using Reach = std::function<Result<void>(const MasterAddress&)>;

// The machine as joining sees and changes it; tests put others in the place.
struct JoinPlace {
  bool is_root = false;
  bool has_systemd = false;  // as the machine's init, and running
  bool has_unit = false;     // gleaner-volunteer.service is installed
  Reach reach;
  // Runs a program of the PATH and returns whether it succeeded.
  std::function<bool(const std::vector<std::string>&)> run;
};

JoinPlace this_machine(Reach reach);

// The file that the unit passes to the service as a credential.
inline constexpr char kLineFile[] = "/etc/gleaner/volunteer.line";

// Keeps `line` in `file`, readable by its owner alone, and starts the unit now and with the
// machine. Where it cannot do one of them, it returns the command that does. A master that cannot
// be reached yet is no error: the service waits for it, and the text says why it cannot. An empty
// `line` is read from standard input, where no history of commands keeps it.
Result<std::string> join(std::string line, const std::string& file, const JoinPlace& place);

// Undoes join(): the service is stopped, which hands the shards over, and starts no more; the line
// is deleted.
Result<std::string> leave(const std::string& file, const JoinPlace& place);

}  // namespace gleaner::volunteer
