// Who gets no shards for a while, since it missed an obligation: longer each time. Pure state; used
// from the core only.
// Invariant: at most kPeersMax are remembered; beyond, the one whose time ends first is forgotten.
#pragma once

#include <algorithm>
#include <map>

#include "common/limits.hpp"
#include "common/time.hpp"

namespace gleaner {

// `Who` is a key, or the invite by which newcomers come.
template <typename Who>
class Quarantines {
 public:
  // Until when it is held back from now on: for `first`, and twice as long as the last time when it
  // missed something before that is not forgotten, up to 64 times `first`; and for `at_least`. It
  // is forgotten when it has met its obligations for that long again.
  Instant missed(const Who& who, Millis first, Millis at_least, Instant now) {
    std::erase_if(held_,
                  [&](const auto& entry) { return entry.second.until + first * kLongest <= now; });
    if (!held_.contains(who) && held_.size() >= kPeersMax) {
      held_.erase(
          std::ranges::min_element(held_, {}, [](const auto& e) { return e.second.until; }));
    }
    Held& held = held_[who];
    held.times = held.times == 0 ? 1 : std::min(held.times * 2, kLongest);
    held.until = std::max(held.until, now + std::max(first * held.times, at_least));
    return held.until;
  }

  // The distant past for one that is not held back.
  [[nodiscard]] Instant until(const Who& who) const {
    const auto found = held_.find(who);
    return found == held_.end() ? Instant{} : found->second.until;
  }

 private:
  static constexpr int kLongest = 64;

  struct Held {
    int times = 0;  // as long as the first time
    Instant until{};
  };

  std::map<Who, Held> held_;
};

}  // namespace gleaner
