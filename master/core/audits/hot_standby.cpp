// Hot standby: the auditor of a holder that is gone has the same shards, and goes on with them.
#include <fmt/format.h>

#include <utility>

#include "common/text.hpp"
#include "master/core/audits/audits.hpp"

namespace gleaner {

bool Audits::is_standby(ShardId shard, CaseId id) const {
  return serves(shard, id) && placement_.shadows().at(shard).is_standby;
}

void Audits::stand_by(Case& audit_case) {
  if (!audit_case.auditor) return;
  const LeaseTable& leases = placement_.leases();
  if (!audit_case.has_left && sessions_.at(audit_case.who.session).phase != SessionPhase::kLeaving)
    return;
  std::uint32_t room = placement_.room_to_take_over(*audit_case.auditor);
  bool is_done = audit_case.open == 0 &&
                 (audit_case.has_left || leases.count_held_by(audit_case.who.session) == 0);
  std::vector<ShardId> ready;
  for (const auto& [shard, work] : audit_case.shards) {
    is_done = is_done && !work.is_due();
    if (!serves(shard, audit_case.id)) continue;
    const ShardLease& lease = leases.at(shard);
    ShardLease& shadow = placement_.shadows().at(shard);
    const bool is_free = lease.state == LeaseState::kFree;
    const bool is_leaving = !audit_case.has_left && holds(audit_case.who.session, shard);
    // A shadow that is behind would keep all others waiting. Another volunteer would be sooner.
    const bool keeps_up = shadow.state == LeaseState::kReady && work.pending == 0;
    const bool is_standby =
        room > 0 && keeps_up && (is_free || is_leaving) && placement_.can_take_over(shard);
    if (std::exchange(shadow.is_standby, is_standby) != is_standby) placement_.look_again();
    if (!is_standby) continue;
    --room;
    // If more is stored, another volunteer that is lent the shard has less to do.
    const bool is_there = shadow.next_commit == lease.committed;
    if (is_free && is_there) ready.push_back(shard);
  }
  if (is_done && !ready.empty()) go_on(audit_case, ready);
}

void Audits::go_on(const Case& audit_case, const std::vector<ShardId>& shards) {
  const SessionId heir = *audit_case.auditor;
  may_begin_.insert(heir);
  if (sessions_.is_audited(sessions_.at(heir))) inherit(heir, audit_case);
  for (const ShardId shard : shards) {
    placement_.take_over(shard);
    shadow_of_.erase(shard);
  }
  outbox_.log(
      LogLevel::kInfo, "took_over",
      fmt::format("{} goes on with {} of {}, from where that one stood", sessions_.name_of(heir),
                  counted(shards.size(), "shard"), audit_case.who.name));
}

void Audits::inherit(SessionId heir, const Case& from) {
  Case& audit_case = case_of(heir, sessions_.at(heir));
  mark(audit_case);
  // Takes all pieces: a piece may cover a shard that is taken over and a shard that somebody else
  // is lent, and begins where earlier pieces left both.
  for (const AuditedPiece& piece : from.pieces) {
    if (is_over(piece) || piece.unit.kind != UnitInFlight::Kind::kTrain) continue;
    audit_case.pieces.push_back(piece);
    for (const LeaseRef& lease : piece.unit.leases) {
      ++work_on(audit_case, lease.shard, piece.round).pending;
    }
  }
}

}  // namespace gleaner
