#include "master/core/placement/lease_table.hpp"

#include "common/check.hpp"

namespace gleaner {

LeaseTable::LeaseTable(std::uint32_t shards, RoundIndex committed, LeaseEpoch first_epoch)
    : shards_(shards), next_epoch_(raw(first_epoch)) {
  for (ShardLease& shard : shards_) shard.committed = committed;
}

LeaseRef LeaseTable::grant(ShardId shard, SessionId holder, RoundIndex base_round,
                           BatchIndex next_batch, Instant now) {
  ShardLease& lease = at(shard);
  GLEANER_CHECK(lease.state == LeaseState::kFree && base_round <= lease.committed);
  lease.state = LeaseState::kLoading;
  lease.since = now;
  lease.holder = holder;
  lease.epoch = LeaseEpoch{next_epoch_++};
  lease.base_round = base_round;
  lease.next_batch = next_batch;
  lease.next_commit = base_round;
  lease.parts_arrived = 0;
  lease.rows_from = 0;
  lease.chunks = lease.chunks_sent = 0;
  return {shard, lease.epoch};
}

ShardLease* LeaseTable::find(const LeaseRef& lease, SessionId session) {
  if (raw(lease.shard) >= shards_.size()) return nullptr;
  ShardLease& shard = at(lease.shard);
  const bool is_live =
      shard.state != LeaseState::kFree && shard.holder == session && shard.epoch == lease.epoch;
  return is_live ? &shard : nullptr;
}

void LeaseTable::set_state(ShardId shard, LeaseState state, Instant now) {
  at(shard).state = state;
  at(shard).since = now;
}

void LeaseTable::release(ShardId shard, Instant now) {
  set_state(shard, LeaseState::kFree, now);
}

std::vector<ShardId> LeaseTable::revoke_all(SessionId holder, Instant now) {
  std::vector<ShardId> revoked = held_by(holder);
  for (const ShardId shard : revoked) {
    // A hand-over that was still being loaded serves the next holder; one that was still arriving
    // is incomplete, and one that was loaded has been trained on since.
    if (at(shard).state != LeaseState::kLoading) at(shard).handed_over.reset();
    release(shard, now);
  }
  return revoked;
}

std::vector<ShardId> LeaseTable::held_by(SessionId holder) const {
  std::vector<ShardId> held;
  for (std::uint32_t s = 0; s < size(); ++s) {
    if (shards_[s].state != LeaseState::kFree && shards_[s].holder == holder) {
      held.push_back(ShardId{s});
    }
  }
  return held;
}

std::vector<ShardId> LeaseTable::in_state(LeaseState state) const {
  std::vector<ShardId> found;
  for (std::uint32_t s = 0; s < size(); ++s) {
    if (shards_[s].state == state) found.push_back(ShardId{s});
  }
  return found;
}

}  // namespace gleaner
