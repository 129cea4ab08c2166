// Auditors: who audits which case, and the shadow leases for it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "common/text.hpp"
#include "master/core/audits/audits.hpp"
#include "master/core/events.hpp"

namespace gleaner {
namespace {

// Cases that update() looks at after one event, and candidates for their audits. The others come
// after the next events.
constexpr std::size_t kCasesMax = 128;
constexpr std::size_t kCandidatesMax = 4096;
// Able volunteers among whom a case's auditor is chosen.
constexpr int kAbleMax = 64;

}  // namespace

bool Audits::needs(const Case& audit_case, ShardId shard, const ShardWork& work) {
  if (work.is_due()) return true;
  return !audit_case.has_left && holds(audit_case.who.session, shard) &&
         lot_.is_drawn(audit_case.who.identity, placement_.leases().at(shard).next_commit);
}

bool Audits::can_audit(SessionId id, const SessionState& session, const Case& audit_case) const {
  const bool is_able =
      session.phase == SessionPhase::kActive && !session.awaits_offer && !session.is_paused();
  if (!is_able || id == audit_case.who.session || sessions_.is_quarantined(session)) return false;
  if (audit_case.dissent && !session.is_trusted()) return false;
  // The round waits for its auditors, so that newcomers audit only where they cannot prove
  // themselves otherwise.
  const bool is_new = sessions_.is_newcomer(session);
  if (session.is_on_trial || (is_new && sessions_.tries_newcomers())) return false;
  // Volunteers of one invite may be one person.
  if (!session.is_trusted() && session.standing.invite == audit_case.who.invite) return false;
  return placement_.has_room_for_shadows(id, session, audit_case.shards.size()) &&
         !holds_of(audit_case, id);
}

std::optional<SessionId> Audits::choose_auditor(const Case& audit_case) {
  using Cost = std::tuple<bool, bool, double, SessionId>;
  std::optional<Cost> best;
  // The best of a few is about as good as the best of all. The search begins behind the last
  // choice, so that everybody has a turn.
  int able = 0;
  in_turn(sessions_.all(), last_auditor_, sessions_.all().size(), [&](const auto& entry) {
    const auto& [id, session] = entry;
    ++candidates_;
    if (!can_audit(id, session, audit_case)) return true;
    const std::uint32_t held = placement_.shards_at(id);
    // The referee audits what nobody else can.
    const Cost cost(session.is_referee() && !audit_case.dissent, sessions_.is_newcomer(session),
                    held / std::max(session.speed, 1.0), id);
    if (!best || cost < *best) best = cost;
    return ++able < kAbleMax;
  });
  if (!best) return std::nullopt;
  last_auditor_ = std::get<SessionId>(*best);
  return last_auditor_;
}

bool Audits::holds(SessionId id, ShardId shard) const {
  const ShardLease& lease = placement_.leases().at(shard);
  return lease.state != LeaseState::kFree && lease.holder == id;
}

bool Audits::holds_of(const Case& audit_case, SessionId id) const {
  return std::ranges::any_of(audit_case.shards, [&](const auto& entry) {
    return entry.second.is_due() && holds(id, entry.first);
  });
}

void Audits::release(ShardId shard) {
  const ShardLease& shadow = placement_.shadows().at(shard);
  if (shadow.state != LeaseState::kFree) {
    outbox_.send(shadow.holder, Revoke{{shard, shadow.epoch}});
    may_begin_.insert(shadow.holder);
    placement_.shadows().release(shard, outbox_.now());
    placement_.look_again();
  }
  shadow_of_.erase(shard);
  changed(shard);
}

std::pair<RoundIndex, Audits::CaseId> Audits::urgency(CaseId id) const {
  const Case& audit_case = cases_.at(id);
  RoundIndex first = run_.plan.round_count() + 1;
  for (const AuditedPiece& piece : audit_case.pieces) {
    if (piece.is_open()) first = std::min(first, piece.round);
  }
  for (const auto& [key, claim] : audit_case.commits) {
    if (claim.is_open()) first = std::min(first, key.first);
  }
  return {first, id};
}

void Audits::dismiss_auditor(Case& audit_case) {
  for (const auto& [shard, work] : audit_case.shards) {
    if (serves(shard, audit_case.id)) release(shard);
  }
  if (audit_case.auditor) {
    std::set<CaseId>& others = by_auditor_.at(*audit_case.auditor);
    others.erase(audit_case.id);
    if (others.empty()) by_auditor_.erase(*audit_case.auditor);
  }
  audit_case.auditor.reset();
  ++audit_case.stint;
  mark(audit_case);
  // This auditor may have sent commits before the holder did. They must not count as the next
  // auditor's.
  std::erase_if(audit_case.commits, [](const auto& entry) { return entry.second.claimed.empty(); });
  audit_case.next_piece = audit_case.first_piece;
  count_pending(audit_case);
}

void Audits::release_misplaced(Case& audit_case) {
  const std::optional<std::uint64_t> number = next_of(audit_case);
  if (!audit_case.auditor || !number) return;
  const SessionState& auditor = sessions_.at(*audit_case.auditor);
  const AuditedPiece& piece = audit_case.pieces[*number - audit_case.first_piece];
  for (const LeaseRef& lease : piece.unit.leases) {
    const ShardLease& shadow = placement_.shadows().at(lease.shard);
    const bool owes = auditor.has_unit_out(lease.shard, run_.plan.batch_count()) ||
                      shadow.next_batch >= run_.plan.round_end(shadow.next_commit);
    if (!serves(lease.shard, audit_case.id) || shadow.state != LeaseState::kReady || owes ||
        shadow.next_batch == piece.unit.first) {
      continue;
    }
    release(lease.shard);
    audit_case.shards.at(lease.shard).first_round = piece.unit.kind == UnitInFlight::Kind::kTrain
                                                        ? run_.plan.round_of(piece.unit.first)
                                                        : piece.round;
  }
}

std::map<ShardId, Audits::ShardWork>::iterator Audits::forget_work(
    Case& audit_case, std::map<ShardId, ShardWork>::iterator work) {
  const auto cases = cases_on_.find(work->first);
  cases->second.erase(audit_case.id);
  if (cases->second.empty()) cases_on_.erase(cases);
  return audit_case.shards.erase(work);
}

void Audits::update_shadows(Case& audit_case) {
  release_misplaced(audit_case);
  contending_.erase(audit_case.id);
  for (auto entry = audit_case.shards.begin(); entry != audit_case.shards.end();) {
    const auto& [shard, work] = *entry;
    if (!needs(audit_case, shard, work) && !is_standby(shard, audit_case.id)) {
      if (serves(shard, audit_case.id)) release(shard);
      entry = forget_work(audit_case, entry);
      continue;
    }
    const auto other = shadow_of_.find(shard);
    if (audit_case.auditor && work.is_due() && other != shadow_of_.end() &&
        other->second != audit_case.id) {
      contending_.insert(audit_case.id);
      if (urgency(audit_case.id) < urgency(other->second))
        dismiss_auditor(cases_.at(other->second));
    }
    // The commit from which the audit begins must be stored, and must be the holder's own: an
    // earlier holder's commit may be stored until then.
    const ShardLease& lease = placement_.leases().at(shard);
    const bool is_there = lease.committed >= work.first_round &&
                          (audit_case.has_left || !holds(audit_case.who.session, shard) ||
                           lease.next_commit >= work.first_round);
    if (audit_case.auditor && is_there && !shadow_of_.contains(shard) &&
        !holds(*audit_case.auditor, shard)) {
      placement_.lend_shadow(shard, *audit_case.auditor, work.first_round);
      shadow_of_[shard] = audit_case.id;
    }
    ++entry;
  }
}

bool Audits::can_go_on(const Case& audit_case) const {
  const SessionState& auditor = sessions_.at(*audit_case.auditor);
  const auto missing = std::ranges::count_if(
      audit_case.shards, [&](const auto& entry) { return !serves(entry.first, audit_case.id); });
  const bool has_room = placement_.has_room_for_shadows(*audit_case.auditor, auditor,
                                                        static_cast<std::size_t>(missing));
  return has_room && !auditor.is_paused() && !holds_of(audit_case, *audit_case.auditor);
}

void Audits::update_auditor(Case& audit_case) {
  if (audit_case.auditor && !can_go_on(audit_case)) dismiss_auditor(audit_case);
  if (audit_case.auditor || audit_case.open == 0) {
    waiting_.erase(audit_case.id);
    return;
  }
  if (candidates_ >= kCandidatesMax) return mark(audit_case);
  audit_case.auditor = choose_auditor(audit_case);
  if (audit_case.auditor) {
    by_auditor_[*audit_case.auditor].insert(audit_case.id);
    waiting_.erase(audit_case.id);
  } else {
    waiting_.insert(audit_case.id);
  }
}

// ---- Where something has changed ---------------------------------------------------------------

void Audits::heard(SessionId id) {
  due_.insert(waiting_.begin(), waiting_.end());
  if (const auto held = by_holder_.find(id); held != by_holder_.end()) due_.insert(held->second);
  if (const auto audited = by_auditor_.find(id); audited != by_auditor_.end()) {
    due_.insert(audited->second.begin(), audited->second.end());
  }
}

void Audits::look_at_some() {
  due_.insert(waiting_.begin(), waiting_.end());
  in_turn(cases_, last_looked_at_, kCasesMax, [&](const auto& entry) {
    last_looked_at_ = entry.first;
    mark(entry.second);
    return true;
  });
}

void Audits::changed(ShardId shard) {
  const auto cases = cases_on_.find(shard);
  if (cases != cases_on_.end()) due_.insert(cases->second.begin(), cases->second.end());
}

std::optional<Audits::CaseId> Audits::next_due(std::optional<CaseId> last) {
  for (LeaseTable* const table : {&placement_.leases(), &placement_.shadows()}) {
    const std::set<ShardId> shards = table->take_changed();
    for (const ShardId shard : shards) changed(shard);
    if (!shards.empty()) due_.insert(waiting_.begin(), waiting_.end());
  }
  const auto due = last ? due_.upper_bound(*last) : due_.begin();
  if (due == due_.end()) return std::nullopt;
  const CaseId next = *due;
  due_.erase(due);
  return next;
}

void Audits::look_at(Case& audit_case) {
  update_auditor(audit_case);
  stand_by(audit_case);
  update_shadows(audit_case);
  if (audit_case.auditor) may_begin_.insert(*audit_case.auditor);
  if (!audit_case.has_left || audit_case.open > 0) return;
  if (audit_case.auditor) dismiss_auditor(audit_case);
  if (has_excused(audit_case, run_.plan.round_count())) return;
  contending_.erase(audit_case.id);
  for (auto work = audit_case.shards.begin(); work != audit_case.shards.end();)
    work = forget_work(audit_case, work);
  cases_.erase(audit_case.id);
}

std::set<SessionId> Audits::update() {
  if (std::exchange(is_all_due_, false) || run_.config.looks_at_all) {
    for (const auto& [id, audit_case] : cases_) due_.insert(due_.end(), id);
  }
  candidates_ = 0;
  std::optional<CaseId> last;
  for (std::size_t cases = 0; cases < kCasesMax; ++cases) {
    const std::optional<CaseId> next = next_due(last);
    if (!next) break;
    last = next;
    const auto found = cases_.find(*next);
    if (found == cases_.end()) continue;
    look_at(found->second);
  }
  return std::exchange(may_begin_, {});
}

// Hot standby: the auditor of a holder that is gone has the same shards, and goes on with them.
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
