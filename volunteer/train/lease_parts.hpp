// What the trainers of both layers say about a lease: a shard's commit and its hand-over, part by
// part, and that a lease is over. Stateless.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

inline Error stale_lease(const LeaseRef& lease) {
  return {ErrorCode::kStaleLease,
          fmt::format("shard {} is not held under lease {}", raw(lease.shard), raw(lease.epoch))};
}

inline Error nothing_to_hand_over(const LeaseRef& lease) {
  return {ErrorCode::kProtocol,
          fmt::format("shard {} is still being loaded: there is nothing to hand over",
                      raw(lease.shard))};
}

// Appends the commit of `round`.
inline void append_commit(const LeaseRef& lease, RoundIndex round, std::vector<SparseUpdate> parts,
                          std::vector<ShardCommit>& commits) {
  const auto count = static_cast<std::uint32_t>(parts.size());
  for (std::uint32_t part = 0; part < count; ++part) {
    commits.push_back({lease, round, part, count, std::move(parts[part])});
  }
}

// Of a shard that stands before `next_batch`: `parts` is what it has beyond checkpoint
// `base_round`.
inline std::vector<HandOver> hand_over_parts(const LeaseRef& lease, RoundIndex base_round,
                                             BatchIndex next_batch, std::vector<ShardRows> parts) {
  const auto count = static_cast<std::uint32_t>(parts.size());
  std::vector<HandOver> result;
  for (std::uint32_t part = 0; part < count; ++part) {
    result.push_back({lease, base_round, next_batch, part, count, std::move(parts[part])});
  }
  return result;
}

}  // namespace gleaner
