// Whom an event concerns. The core looks only at what an event may have changed, so that its cost
// does not grow with all that is there. Events that come at the pace of the work concern a
// volunteer or a shard, and what handles them marks it; time is looked at in turn. All others are
// rare. Pure.
#pragma once

#include <variant>

#include "master/core/events/events.hpp"

namespace gleaner {

namespace detail {

template <typename... Kinds>
bool is_one_of(const Event& event) {
  return (std::holds_alternative<Kinds>(event) || ...);
}

}  // namespace detail

// Whether the event may have changed anything.
inline bool concerns_all(const Event& event) {
  return !detail::is_one_of<SessionOpened, MessageReceived, SessionClosed, ForwardDone,
                            BackwardDone, PointsRead, ChunkRead, Staged, GradientsAdded, Tick>(
      event);
}

}  // namespace gleaner
