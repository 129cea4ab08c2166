#include "master/core/lease_table.hpp"

#include "common/result.hpp"

namespace gleaner {

LeaseTable::LeaseTable(std::uint32_t shards, RoundIndex committed, LeaseEpochs& epochs)
    : shards_(shards), epochs_(epochs) {
  for (ShardLease& shard : shards_) shard.committed = committed;
  std::set<ShardId>& free = states_[static_cast<std::size_t>(LeaseState::kFree)];
  for (std::uint32_t s = 0; s < shards; ++s) free.insert(free.end(), ShardId{s});
}

LeaseRef LeaseTable::grant(ShardId shard, SessionId holder, RoundIndex base_round,
                           BatchIndex next_batch, Instant now) {
  ShardLease& lease = at(shard);
  GLEANER_CHECK(lease.state == LeaseState::kFree && base_round <= lease.committed);
  lease.holder = holder;
  set_state(shard, LeaseState::kLoading, now);
  lease.epoch = epochs_.take();
  lease.base_round = base_round;
  lease.next_batch = next_batch;
  lease.next_commit = base_round;
  lease.parts_arrived = 0;
  lease.commit_so_far = {};
  lease.rows_from = 0;
  lease.chunks = lease.chunks_sent = lease.chunks_asked = 0;
  return {shard, lease.epoch};
}

void LeaseTable::take_over(ShardId shard, const ShardLease& shadow, Instant now) {
  ShardLease& lease = at(shard);
  GLEANER_CHECK(lease.state == LeaseState::kFree && shadow.state == LeaseState::kReady);
  lease.holder = shadow.holder;
  set_state(shard, LeaseState::kReady, now);
  lease.epoch = shadow.epoch;
  lease.base_round = shadow.base_round;
  lease.next_batch = shadow.next_batch;
  lease.next_commit = shadow.next_commit;
  lease.parts_arrived = 0;
  lease.commit_so_far = {};
  lease.rows_from = 0;
  lease.handed_over.reset();
}

ShardLease* LeaseTable::find(const LeaseRef& lease, SessionId session) {
  if (raw(lease.shard) >= shards_.size()) return nullptr;
  ShardLease& shard = at(lease.shard);
  const bool is_live =
      shard.state != LeaseState::kFree && shard.holder == session && shard.epoch == lease.epoch;
  return is_live ? &shard : nullptr;
}

void LeaseTable::set_state(ShardId shard, LeaseState state, Instant now) {
  ShardLease& lease = at(shard);
  states_[static_cast<std::size_t>(lease.state)].erase(shard);
  states_[static_cast<std::size_t>(state)].insert(shard);
  if (state != LeaseState::kFree) {
    holders_[lease.holder].insert(shard);
  } else if (const auto held = holders_.find(lease.holder); held != holders_.end()) {
    held->second.erase(shard);
    if (held->second.empty()) holders_.erase(held);
  }
  changed_.insert(shard);
  lease.state = state;
  lease.since = now;
  lease.outstanding.reset();
}

void LeaseTable::release(ShardId shard, Instant now) {
  at(shard).is_standby = false;
  set_state(shard, LeaseState::kFree, now);
}

std::vector<ShardId> LeaseTable::revoke_all(SessionId holder, Instant now) {
  std::vector<ShardId> revoked = held_by(holder);
  for (const ShardId shard : revoked) {
    // A hand-over that was still being loaded serves the next holder. A hand-over that was still
    // arriving is incomplete, and a loaded one has been trained on since.
    if (at(shard).state != LeaseState::kLoading) at(shard).handed_over.reset();
    release(shard, now);
  }
  return revoked;
}

const std::set<ShardId>& LeaseTable::shards_of(SessionId holder) const {
  static const std::set<ShardId> kNone;
  const auto held = holders_.find(holder);
  return held == holders_.end() ? kNone : held->second;
}

std::vector<ShardId> LeaseTable::held_by(SessionId holder) const {
  const std::set<ShardId>& shards = shards_of(holder);
  return {shards.begin(), shards.end()};
}

std::size_t LeaseTable::count_held_by(SessionId holder) const {
  return shards_of(holder).size();
}

}  // namespace gleaner
