// The two lanes of a link. Frames of one lane arrive in the order of sending. An urgent frame
// overtakes all ordered frames that have not begun to leave, so it waits for at most one ordered
// frame.
#pragma once

#include <cstdint>

namespace gleaner {

enum class Lane : std::uint8_t { kOrdered, kUrgent };

}  // namespace gleaner
