// Events, effects and messages in words, for traces.
#pragma once

#include <string>

#include "master/core/events.hpp"
#include "volunteer/core/events.hpp"

namespace gleaner::sim {

std::string describe(const Message& message);
// Empty for ticks, heartbeats and other events without news.
std::string describe(const Event& event);
std::string describe(const Effect& effect);
std::string describe(const volunteer::Effect& effect);

}  // namespace gleaner::sim
