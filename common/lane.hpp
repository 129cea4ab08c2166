// The two lanes of a link. Frames of one lane arrive in the order of their sending; an urgent one
// goes before every ordered one that has not begun to leave, so that bulk on its way delays
// it by no more than a frame.
#pragma once

#include <cstdint>

namespace gleaner {

enum class Lane : std::uint8_t { kOrdered, kUrgent };

}  // namespace gleaner
