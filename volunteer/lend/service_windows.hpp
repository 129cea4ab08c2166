// The service of Windows, which lends a machine also where nobody logs in: what join and leave do
// as an administrator. It runs as LocalService, and only while it is joined is there anything of
// it: a program in Program Files, and a folder that it shares with administrators alone.
#pragma once

#include <functional>
#include <string>

#include "common/result.hpp"

namespace gleaner::volunteer {

// Where this program is.
std::string own_path();

// Asks until it is true, for a minute at most; whether it is.
bool wait_until(const std::function<bool()>& is_done);

bool has_service();

// Where the service's line is kept.
std::string service_line_file();

// Keeps the line, and starts the service now and with the machine, with this program; one that runs
// is stopped before.
Result<void> install_service(const std::string& line);

// Stops the service, which hands the shards over, and deletes all that install_service() and the
// service have made.
Result<void> remove_service();

}  // namespace gleaner::volunteer
