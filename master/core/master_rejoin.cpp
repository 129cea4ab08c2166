// Volunteers that come back with shards they kept: nothing is downloaded again, and nothing of
// theirs is trusted before its digest is the store's.
#include <fmt/format.h>

#include "common/counted.hpp"
#include "master/core/master_core.hpp"

namespace gleaner {

bool MasterCore::waits_for_rejoin() {
  if (expects_rejoin_) {
    expects_rejoin_ = false;
    rejoin_until_ = now_ + config_.rejoin_grace;
  }
  if (rejoin_until_ && (now_ >= *rejoin_until_ || leases_.in_state(LeaseState::kFree).empty())) {
    rejoin_until_.reset();
  }
  return rejoin_until_.has_value();
}

void MasterCore::on_message(SessionId id, SessionState& session, ShardOffer& offer) {
  if (!session.awaits_offer ||
      (!offer.shards.empty() && raw(offer.shards.back().lease.shard) >= map_.shard_count())) {
    refuse(id, ErrorCode::kProtocol, "an offer of shards that does not fit", false);
    return;
  }
  session.awaits_offer = false;
  session.last_progress = now_;
  // While a round is being folded the log may forget what the offered state would need.
  const bool is_current =
      offer.checkpoint == checkpoint_ && !is_folding_ && session.phase == SessionPhase::kActive;
  std::vector<ShardId> accepted;
  std::vector<ShardId> different;
  for (const OfferedShard& offered : offer.shards) {
    const ShardId shard = offered.lease.shard;
    // Input shards are not wanted by a master that holds them itself.
    const bool is_wanted =
        is_current && raw(shard) < leases_.size() && leases_.at(shard).state == LeaseState::kFree;
    const bool is_same = raw(shard) < digests_.size() && digests_[raw(shard)] == offered.digest;
    if (is_wanted && is_same) {
      accepted.push_back(shard);
      continue;
    }
    if (is_wanted) different.push_back(shard);
    say(id, Revoke{offered.lease});
  }
  for (const ShardId shard : accepted) {
    // What it has is the checkpoint; later commits and a hand-over that were made of it meanwhile
    // come out again.
    leases_.at(shard).handed_over.reset();
    LeaseGrant grant;
    grant.base_round = checkpoint_;
    grant.next_batch = plan_.round_begin(checkpoint_);
    grant.lease = leases_.grant(shard, id, grant.base_round, grant.next_batch, now_);
    grant.is_held = true;
    if (layer_of(shard) == Layer::kInput) begin_input(shard, session, grant.next_batch);
    say(id, std::move(grant));
  }
  if (accepted.empty()) has_newcomer_ = true;
  if (!accepted.empty()) {
    remark(Severity::kInfo, "rejoined",
           fmt::format("{} is back with {} as of checkpoint {}: nothing to download",
                       session.name(), counted(accepted.size(), "shard"), checkpoint_));
  }
  if (!different.empty()) {
    ++account(session).faults;
    remark(Severity::kWarning, "different_content",
           fmt::format("{} offers shard {}{} with a different content: loaded from the store "
                       "instead",
                       session.name(), raw(different.front()),
                       different.size() == 1 ? std::string()
                                             : fmt::format(" and {} more", different.size() - 1)));
  }
}

}  // namespace gleaner
