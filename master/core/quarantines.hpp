// Keeps who gets no shards for a while after a missed obligation; each time longer. Pure state;
// used from the core only.
// Invariant: at most kPeersMax entries; a further one replaces the entry that ends first.
#pragma once

#include <algorithm>
#include <map>

#include "common/limits.hpp"
#include "common/time.hpp"

namespace gleaner {

// `Who` is a key, or the invite of newcomers.
template <typename Who>
class Quarantines {
 public:
  // Quarantines `who` for a missed obligation; returns the end. The first quarantine lasts `first`,
  // each further one twice the last, at most 64 times `first`, never less than `at_least`. A
  // quarantine is forgotten 64 times `first` after its end.
  Instant missed(const Who& who, Millis first, Millis at_least, Instant now) {
    std::erase_if(entries_,
                  [&](const auto& known) { return known.second.until + first * kLongest <= now; });
    if (!entries_.contains(who) && entries_.size() >= kPeersMax) {
      entries_.erase(
          std::ranges::min_element(entries_, {}, [](const auto& e) { return e.second.until; }));
    }
    Entry& entry = entries_[who];
    entry.times = entry.times == 0 ? 1 : std::min(entry.times * 2, kLongest);
    entry.until = std::max(entry.until, now + std::max(first * entry.times, at_least));
    return entry.until;
  }

  // The distant past where `who` is not quarantined.
  [[nodiscard]] Instant until(const Who& who) const {
    const auto found = entries_.find(who);
    return found == entries_.end() ? Instant{} : found->second.until;
  }

 private:
  static constexpr int kLongest = 64;

  struct Entry {
    int times = 0;  // as long as the first time
    Instant until{};
  };

  std::map<Who, Entry> entries_;
};

}  // namespace gleaner
