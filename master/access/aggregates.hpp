// Reduces a status to what observers and volunteers may see.
#pragma once

#include "schema/messages.hpp"

namespace gleaner {

// Takes names, addresses and what tells of single volunteers out of `status`: figures stay.
void keep_aggregates(RunStatus& status);

}  // namespace gleaner
