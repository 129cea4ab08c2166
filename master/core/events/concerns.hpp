// Whom an event concerns. The core looks only at what an event may have changed, so that an event
// costs no more where there are more volunteers and shards. An event of the work concerns one
// volunteer or one shard, and the function that handles it marks these. At a Tick some of all are
// looked at, in turn. All other events are rare, and everything is looked at. Pure.
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
