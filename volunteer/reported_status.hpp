// Translates the core's snapshot for the status line. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "volunteer/core/events.hpp"
#include "volunteer/volunteer_status.hpp"

namespace gleaner {

// `master` is HOST:PORT; `memory_bytes` are the shards' bytes.
VolunteerStatus status_of(const volunteer::Snapshot& snapshot, const std::string& master,
                          std::uint64_t memory_bytes);

// "finished: thank you, 3 h 12 min, 41,000 examples checked".
std::string thanks_text(const volunteer::Service& service);

}  // namespace gleaner
