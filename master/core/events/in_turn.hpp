// Some entries of a map, in turn: whoever looks at a few each time comes to all of them. Pure.
#pragma once

#include <algorithm>
#include <cstddef>

namespace gleaner {

// Visits up to `most` entries, the first of them behind the key `last`, going on at the beginning
// after the end, each once, while `visit` returns true. `last` is read first: a visit may change
// it.
template <typename Map, typename Visit>
void in_turn(Map& map, const typename Map::key_type& last, std::size_t most, const Visit& visit) {
  auto next = map.upper_bound(last);
  for (std::size_t left = std::min(map.size(), most); left > 0; --left, ++next) {
    if (next == map.end()) next = map.begin();
    if (!visit(*next)) return;
  }
}

}  // namespace gleaner
