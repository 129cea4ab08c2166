// Asking a running master how its run stands: one connection, one question, one answer.
#pragma once

#include <string>

#include "common/host_port.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Errors name the address. kIo when nobody answers there; what the master refuses has the code it
// gave.
Result<RunStatus> ask_master(const HostPort& address, const std::string& token);

}  // namespace gleaner
