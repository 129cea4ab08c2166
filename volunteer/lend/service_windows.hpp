// The Windows service, which lends a machine also while nobody is logged in. join and leave install
// and remove it when an administrator runs them. It runs as LocalService. Its program in Program
// Files and its folder, which only it and administrators may open, exist only while it is
// installed.
#pragma once

#include <functional>
#include <string>

#include "common/result.hpp"

namespace gleaner::volunteer {

// The path of this program.
std::string own_path();

// Polls `is_done` for a minute at most. Returns whether it became true.
bool wait_until(const std::function<bool()>& is_done);

bool has_service();

// The file that holds the service's line.
std::string service_line_file();

// Stores the line, and starts the service with this program, now and with the machine. Stops a
// running service first.
Result<void> install_service(const std::string& line);

// Stops the service, which hands the shards over, and deletes everything that install_service() and
// the service have made.
Result<void> remove_service();

}  // namespace gleaner::volunteer
