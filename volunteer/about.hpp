// Facts for a machine's owner who may lend it: the answer of `gleaner-volunteer about`.
#pragma once

#include <string>

#include "schema/tool_messages.hpp"
#include "volunteer/config.hpp"

namespace gleaner::volunteer {

// One screen of text: the run of the master at `where`, what it takes from this machine under the
// default limits of `offer`, and what leaves the machine. Pure.
std::string about_text(const RunStatus& status, const std::string& where,
                       const VolunteerOffer& offer);

}  // namespace gleaner::volunteer
