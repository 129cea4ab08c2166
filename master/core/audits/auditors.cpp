// Who audits whom, and which shards that takes.
#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "master/core/audits/audits.hpp"

namespace gleaner {

bool Audits::needs(const Case& own, ShardId shard, const ShardWork& work) {
  if (work.is_due()) return true;
  return !own.has_left && holds(own.who.session, shard) &&
         lot_.is_drawn(own.who.identity, placement_.leases().at(shard).next_commit);
}

std::optional<SessionId> Audits::choose_auditor(const Case& own) const {
  std::optional<SessionId> best;
  std::tuple<bool, bool, double> best_cost;
  for (const auto& [id, session] : sessions_.all()) {
    const bool is_able =
        session.phase == SessionPhase::kActive && !session.awaits_offer && !session.is_paused();
    if (!is_able || id == own.who.session || outbox_.now() < session.held_back_until) continue;
    if (own.dissent && !session.is_trusted()) continue;
    // The round waits for its auditors. Where newcomers cannot prove themselves otherwise, they may
    // be the first.
    const bool is_new = placement_.is_newcomer(session);
    if (session.is_on_trial || (is_new && sessions_.tries_newcomers())) continue;
    // Who came by one invite may be one person.
    if (!session.is_trusted() && session.standing.invite == own.who.invite) continue;
    if (!placement_.has_room_for_shadows(id, session, own.shards.size()) || holds_of(own, id)) {
      continue;
    }
    const std::uint32_t held = placement_.shards_at(id);
    // The referee does what nobody else can.
    const std::tuple cost(session.is_referee() && !own.dissent, is_new,
                          held / std::max(session.speed, 1.0));
    if (!best || cost < best_cost) {
      best = id;
      best_cost = cost;
    }
  }
  return best;
}

bool Audits::holds(SessionId id, ShardId shard) const {
  const ShardLease& lease = placement_.leases().at(shard);
  return lease.state != LeaseState::kFree && lease.holder == id;
}

bool Audits::holds_of(const Case& own, SessionId id) const {
  return std::ranges::any_of(own.shards, [&](const auto& entry) {
    return entry.second.is_due() && holds(id, entry.first);
  });
}

void Audits::release(ShardId shard) {
  const ShardLease& shadow = placement_.shadows().at(shard);
  if (shadow.state != LeaseState::kFree) {
    outbox_.send(shadow.holder, Revoke{{shard, shadow.epoch}});
    placement_.shadows().release(shard, outbox_.now());
  }
  shadow_of_.erase(shard);
}

std::pair<RoundIndex, Audits::CaseId> Audits::urgency(CaseId id) const {
  const Case& own = cases_.at(id);
  RoundIndex first = run_.plan.round_count() + 1;
  for (const AuditedPiece& piece : own.pieces) {
    if (piece.is_open()) first = std::min(first, piece.round);
  }
  for (const auto& [key, claim] : own.commits) {
    if (claim.is_open()) first = std::min(first, key.first);
  }
  return {first, id};
}

void Audits::dismiss_auditor(CaseId id, Case& own) {
  for (const auto& [shard, work] : own.shards) {
    if (serves(shard, id)) release(shard);
  }
  if (own.auditor) {
    std::set<CaseId>& others = by_auditor_.at(*own.auditor);
    others.erase(id);
    if (others.empty()) by_auditor_.erase(*own.auditor);
  }
  own.auditor.reset();
  // This auditor may have sent commits before the holder did. They must not count as the next
  // auditor's.
  std::erase_if(own.commits, [](const auto& entry) { return entry.second.claimed.empty(); });
  own.next_piece = own.first_piece;
  count_pending(own);
}

void Audits::release_misplaced(CaseId id, Case& own) {
  const std::optional<std::uint64_t> number = next_of(own);
  if (!own.auditor || !number) return;
  const SessionState& auditor = sessions_.at(*own.auditor);
  const AuditedPiece& piece = own.pieces[*number - own.first_piece];
  for (const LeaseRef& lease : piece.unit.leases) {
    const ShardLease& shadow = placement_.shadows().at(lease.shard);
    const bool owes = auditor.has_unit_out(lease.shard, run_.plan.batch_count()) ||
                      shadow.next_batch >= run_.plan.round_end(shadow.next_commit);
    if (!serves(lease.shard, id) || shadow.state != LeaseState::kReady || owes ||
        shadow.next_batch == piece.unit.first) {
      continue;
    }
    release(lease.shard);
    own.shards.at(lease.shard).first_round = piece.unit.kind == UnitInFlight::Kind::kTrain
                                                 ? run_.plan.round_of(piece.unit.first)
                                                 : piece.round;
  }
}

void Audits::update_shadows(CaseId id, Case& own) {
  release_misplaced(id, own);
  for (auto entry = own.shards.begin(); entry != own.shards.end();) {
    const auto& [shard, work] = *entry;
    if (!needs(own, shard, work) && !is_standby(shard, id)) {
      if (serves(shard, id)) release(shard);
      entry = own.shards.erase(entry);
      continue;
    }
    const auto other = shadow_of_.find(shard);
    if (own.auditor && work.is_due() && other != shadow_of_.end() && other->second != id &&
        urgency(id) < urgency(other->second)) {
      dismiss_auditor(other->second, cases_.at(other->second));
    }
    // The commit that it begins from must be stored, and must be the one that the holder sent: what
    // is stored may be an earlier holder's until then.
    const ShardLease& lease = placement_.leases().at(shard);
    const bool is_there =
        lease.committed >= work.first_round &&
        (own.has_left || !holds(own.who.session, shard) || lease.next_commit >= work.first_round);
    if (own.auditor && is_there && !shadow_of_.contains(shard) && !holds(*own.auditor, shard)) {
      placement_.lend_shadow(shard, *own.auditor, work.first_round);
      shadow_of_[shard] = id;
    }
    ++entry;
  }
}

bool Audits::can_go_on(CaseId id, const Case& own) const {
  const SessionState& auditor = sessions_.at(*own.auditor);
  const auto missing = std::ranges::count_if(
      own.shards, [&](const auto& entry) { return !serves(entry.first, id); });
  const bool has_room =
      placement_.has_room_for_shadows(*own.auditor, auditor, static_cast<std::size_t>(missing));
  return has_room && !auditor.is_paused() && !holds_of(own, *own.auditor);
}

void Audits::update_auditor(CaseId id, Case& own) {
  if (own.auditor && !can_go_on(id, own)) dismiss_auditor(id, own);
  if (own.auditor || own.open == 0) return;
  own.auditor = choose_auditor(own);
  if (own.auditor) by_auditor_[*own.auditor].insert(id);
  wants_referee_ = wants_referee_ || !own.auditor;
}

void Audits::update() {
  wants_referee_ = false;
  for (auto entry = cases_.begin(); entry != cases_.end();) {
    auto& [id, own] = *entry;
    update_auditor(id, own);
    stand_by(id, own);
    update_shadows(id, own);
    const bool is_done = own.has_left && own.open == 0;
    if (is_done) dismiss_auditor(id, own);
    const bool may_be_audited = has_excused(own, run_.plan.round_count());
    entry = is_done && !may_be_audited ? cases_.erase(entry) : std::next(entry);
  }
}

}  // namespace gleaner
