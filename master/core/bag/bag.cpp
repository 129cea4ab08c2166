#include "master/core/bag/bag.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/text.hpp"
#include "master/core/session.hpp"

namespace gleaner {
namespace {

// Volunteers without work that lend() looks at after one event.
constexpr std::size_t kHungryMax = 1024;
// Pieces to be repeated that one volunteer is offered, and pieces for which a referee is called.
constexpr std::size_t kAuditsMax = 64;
// Pieces in work among which one volunteer looks for a spare.
constexpr std::size_t kSparesMax = 256;
// Volunteers without work that may look for a spare after a tick.
constexpr std::uint32_t kSeekersMax = 64;
// A spare begins when the piece has taken this multiple of the volunteer's own time for it.
constexpr double kSpareAfter = 1.5;
constexpr Micros kSpareAfterLeast{1'000'000};

// The checkpoint from which the piece begins.
RoundIndex base_of(const AuditPiece& piece) {
  return piece.is_scores ? piece.round + 1 : piece.round;
}

}  // namespace

Bag::Bag(const RunSetup& run, Outbox& outbox, Sessions& sessions, Placement& placement,
         UnitLedger& ledger, ShardRounds& work, Rounds& rounds, RoundMeter& meter)
    : run_(run),
      outbox_(outbox),
      sessions_(sessions),
      placement_(placement),
      leases_(placement.leases()),
      shadow_leases_(placement.shadows()),
      ledger_(ledger),
      work_(work),
      rounds_(rounds),
      meter_(meter),
      index_(run.map.output_shards()) {
  for (std::uint32_t s = 0; s < run.map.output_shards(); ++s) {
    leases_.at(ShardId{s}).committed = work_.settled_before(ShardId{s});
    file(ShardId{s});
  }
}

// ---- What there is -----------------------------------------------------------------------------

RoundIndex Bag::next_round(const ShardLease& lease, ShardId shard) const {
  const RoundIndex at =
      lease.state == LeaseState::kFree ? lease.committed : run_.plan.round_of(lease.next_batch);
  return at > 0 && work_.owes_scores(at, shard) ? at - 1 : at;
}

void Bag::file(ShardId shard) {
  using Kind = LeaseIndex::Kind;
  const ShardLease& lease = leases_.at(shard);
  if (lease.state == LeaseState::kFree) work_.drop_unfinished(shard);
  LeaseIndex::Entry entry{Kind::kOut, next_round(lease, shard), lease.holder, outbox_.now()};
  if (lease.state == LeaseState::kFree) {
    entry.kind = work_.is_being_stored(lease.committed, shard) ? Kind::kNowhere : Kind::kFree;
  } else if (is_idle(lease, shard)) {
    entry.kind = Kind::kIdle;
    due_.insert(lease.holder);
  } else if (const auto piece = piece_out(shard)) {
    entry.round = piece->round;
  }
  has_news_ = has_news_ || entry.kind == Kind::kFree || entry.kind == Kind::kIdle;
  index_.put(shard, entry);
}

bool Bag::is_idle(const ShardLease& lease, ShardId shard) const {
  return lease.state == LeaseState::kReady &&
         !sessions_.at(lease.holder).has_unit_out(shard, ~BatchIndex{0});
}

bool Bag::is_stored(const ShardLease& lease) const {
  return lease.committed >= run_.plan.round_of(lease.next_batch);
}

void Bag::file_changed() {
  for (const ShardId shard : leases_.take_changed()) {
    if (raw(shard) < run_.map.output_shards()) file(shard);
  }
  for (const ShardId shard : shadow_leases_.take_changed()) shadow_changed(shard);
}

void Bag::shadow_changed(ShardId shard) {
  const ShardLease& shadow = shadow_leases_.at(shard);
  const auto purpose = shadows_.find(shard);
  if (purpose == shadows_.end()) return;
  if (shadow.state == LeaseState::kFree) {
    shadows_.erase(purpose);
    work_.stop_again(shard);
    has_news_ = true;
  } else if (!purpose->second.is_spare && !work_.is_done_again(shard)) {
    end_shadow(shard);
  } else if (shadow.state == LeaseState::kReady && !purpose->second.is_begun) {
    begin_shadow(shard, shadow.holder, sessions_.at(shadow.holder));
  }
}

// ---- Who gets what -----------------------------------------------------------------------------

void Bag::lend() {
  const RoundIndex open_end = rounds_.open_end();
  has_news_ = has_news_ || open_end != open_end_ || is_all_due_ || run_.config.looks_at_all;
  open_end_ = open_end;
  if (std::exchange(is_all_due_, false)) {
    for (const auto& [id, session] : sessions_.all()) due_.insert(id);
  }
  file_changed();
  take_spoiled();
  file_changed();
  while (!due_.empty()) {
    const SessionId next = *due_.begin();
    due_.erase(due_.begin());
    give(next);
    file_changed();
  }
  has_news_ = work_.take_news() || has_news_;
  if (!std::exchange(has_news_, false) || !is_anything_left()) return;
  std::size_t looked_at = 0;
  for (const SessionId id : std::set<SessionId>(hungry_)) {
    if (++looked_at > kHungryMax || !is_anything_left()) break;
    give(id);
    file_changed();
  }
  seekers_left_ = 0;
  has_news_ = looked_at > kHungryMax;
}

bool Bag::is_anything_left() const {
  const auto has_open = [&](const auto& pieces) {
    return !pieces.empty() && std::get<0>(*pieces.begin()) < open_end_;
  };
  return has_open(index_.free()) || has_open(index_.rich()) || !work_.wanted().empty() ||
         seekers_left_ > 0;
}

std::size_t Bag::hands(const SessionState& session) const {
  // A stranger whose work has never counted may be a liar: it gets one piece at a time.
  if (sessions_.is_newcomer(session)) return 1;
  const std::size_t threads = session.threads();
  if (session.compute_us <= 0 || session.round_trip_us <= 0) return threads + 1;
  const double unit_us = session.compute_us * static_cast<double>(run_.plan.round_end(0));
  const double over_link = std::ceil(static_cast<double>(session.round_trip_us) *
                                     static_cast<double>(threads) / unit_us);
  return threads + 1 + std::min(2 * threads + 2, static_cast<std::size_t>(over_link));
}

std::size_t Bag::in_hand(SessionId id) const {
  return leases_.count_held_by(id) - index_.idle_at(id).size() + shadow_leases_.count_held_by(id);
}

bool Bag::is_needed(const SessionState& session) const {
  if (!sessions_.is_quarantined(session)) return true;
  return std::ranges::none_of(sessions_.all(), [&](const auto& entry) {
    const SessionState& other = entry.second;
    return other.phase == SessionPhase::kActive && !other.is_paused() && !other.is_referee() &&
           !sessions_.is_quarantined(other);
  });
}

bool Bag::may_work(const SessionState& session) const {
  return session.phase == SessionPhase::kActive && !session.awaits_offer && !session.is_paused() &&
         !placement_.is_quiet(session) && is_needed(session);
}

void Bag::give(SessionId id) {
  hungry_.erase(id);
  SessionState* const session = sessions_.find(id);
  if (session == nullptr || !may_work(*session)) return;
  while (in_hand(id) < hands(*session)) {
    if (!give_one(id, *session)) {
      hungry_.insert(id);
      return;
    }
    session->no_shards.clear();
    file_changed();
  }
}

std::optional<Bag::Piece> Bag::first_idle(SessionId id) const {
  const std::set<Piece>& idle = index_.idle_at(id);
  if (idle.empty() || idle.begin()->first >= open_end_) return std::nullopt;
  return *idle.begin();
}

std::optional<Bag::Piece> Bag::first_free(SessionId id) const {
  if (placement_.rejoin_until()) return std::nullopt;
  for (const Piece& piece : index_.free()) {
    if (piece.first >= open_end_) break;
    const ShardLease& shadow = shadow_leases_.at(piece.second);
    if (shadow.state == LeaseState::kFree || shadow.holder != id) return piece;
  }
  return std::nullopt;
}

std::optional<std::pair<Bag::Piece, SessionId>> Bag::stealable(SessionId thief) const {
  for (const auto& [round, count, holder] : index_.rich()) {
    if (round >= open_end_) break;
    if (holder == thief) continue;
    const std::set<Piece>& idle = index_.idle_at(holder);
    // Take the last idle shard of the earliest round: its holder comes to it last.
    auto piece = idle.lower_bound({round + 1, ShardId{0}});
    while (piece != idle.begin()) {
      --piece;
      const ShardLease& shadow = shadow_leases_.at(piece->second);
      const bool is_mine = shadow.state != LeaseState::kFree && shadow.holder == thief;
      if (is_stored(leases_.at(piece->second)) && !is_mine) return std::pair(*piece, holder);
    }
  }
  return std::nullopt;
}

bool Bag::may_do_again(SessionId id, const SessionState& session, const AuditPiece& piece) const {
  if (!work_.may_audit(piece, session.standing.identity, session.standing, session.is_trusted())) {
    return false;
  }
  const bool is_last_resort = work_.is_disputed(piece) || for_referee_.contains(piece);
  if (session.is_referee() && !is_last_resort) return false;
  const RoundIndex base = base_of(piece);
  const ShardLease& lease = leases_.at(piece.shard);
  if (shadow_leases_.at(piece.shard).state != LeaseState::kFree || lease.committed < base) {
    return false;
  }
  const bool is_own = lease.state != LeaseState::kFree && lease.holder == id;
  return !is_own || (is_idle(lease, piece.shard) && is_stored(lease));
}

std::optional<AuditPiece> Bag::audit_for(SessionId id, const SessionState& session) const {
  std::size_t looked_at = 0;
  for (const AuditPiece& piece : work_.wanted()) {
    if (++looked_at > kAuditsMax) break;
    if (may_do_again(id, session, piece)) return piece;
  }
  return std::nullopt;
}

bool Bag::give_one(SessionId id, SessionState& session) {
  const std::optional<AuditPiece> audit = audit_for(id, session);
  if (session.is_referee()) return audit && take_audit(id, session, *audit);
  const std::optional<Piece> own = first_idle(id);
  const std::optional<Piece> free = first_free(id);
  const auto theft = stealable(id);
  const auto round_of = [](const auto& piece) { return piece ? piece->first : ~RoundIndex{0}; };
  const RoundIndex again = audit ? audit->round : ~RoundIndex{0};
  const RoundIndex best = std::min({round_of(own), round_of(free), again});
  if (theft && theft->first.first < best) {
    // A holder soon begins its last idle shards itself, one for each of its threads.
    const auto& [piece, holder] = *theft;
    const bool is_long = index_.idle_at(holder).size() > sessions_.at(holder).threads();
    const bool is_able = may_work(sessions_.at(holder));
    if ((is_long || !is_able || best == ~RoundIndex{0}) && take_idle(id, piece.second)) return true;
  }
  if (best != ~RoundIndex{0} && take_spare(id, session, best, false)) return true;
  if (own && own->first == best) {
    begin(own->second, id, session);
    return true;
  }
  if (free && free->first == best && take_free(id, session, free->second)) return true;
  if (audit && take_audit(id, session, *audit)) return true;
  if (own) {
    begin(own->second, id, session);
    return true;
  }
  if (seekers_left_ == 0) return false;
  --seekers_left_;
  return take_spare(id, session, ~RoundIndex{0}, true);
}

bool Bag::make_room(SessionId id, SessionState& session) {
  while (!placement_.has_room_for_shadows(id, session, 1)) {
    const std::set<Piece>& idle = index_.idle_at(id);
    auto last = idle.end();
    do {
      if (last == idle.begin()) return false;
      --last;
    } while (!is_stored(leases_.at(last->second)));
    revoke(leases_, last->second);
    file_changed();
  }
  return true;
}

bool Bag::take_free(SessionId id, SessionState& session, ShardId shard) {
  if (!make_room(id, session)) return false;
  placement_.lend(shard, id);
  return true;
}

bool Bag::take_idle(SessionId id, ShardId shard) {
  SessionState& session = sessions_.at(id);
  if (!make_room(id, session)) return false;
  leases_.at(shard).held_before = sessions_.name_of(leases_.at(shard).holder);
  leases_.at(shard).moved_why = "another volunteer comes to it sooner";
  revoke(leases_, shard);
  placement_.lend(shard, id);
  return true;
}

bool Bag::take_audit(SessionId id, SessionState& session, const AuditPiece& piece) {
  const ShardLease& lease = leases_.at(piece.shard);
  if (lease.state != LeaseState::kFree && lease.holder == id) revoke(leases_, piece.shard);
  if (!make_room(id, session)) return false;
  shadows_[piece.shard] = {piece, false, false};
  work_.begin_again(piece, doer(id, session));
  placement_.lend_shadow(piece.shard, id, base_of(piece));
  return true;
}

std::optional<AuditPiece> Bag::piece_out(ShardId shard) const {
  const ShardLease& lease = leases_.at(shard);
  const RoundIndex at = run_.plan.round_of(lease.next_batch);
  const bool trains =
      lease.state == LeaseState::kReady && at > 0 && !work_.has_result(at - 1, shard);
  if (trains && lease.committed == at - 1) return AuditPiece{at - 1, shard, false};
  if (trains || lease.committed != at) return std::nullopt;
  if (work_.owes_scores(at, shard)) return AuditPiece{at - 1, shard, true};
  if (lease.state != LeaseState::kLoading || at >= open_end_) return std::nullopt;
  return AuditPiece{at, shard, false};
}

bool Bag::take_spare(SessionId id, SessionState& session, RoundIndex end, bool is_idle) {
  if (sessions_.is_audited(session)) return false;
  const double unit_us = session.compute_us * static_cast<double>(run_.plan.round_end(0));
  const Micros patience =
      std::max(kSpareAfterLeast, Micros(static_cast<std::int64_t>(kSpareAfter * unit_us)));
  std::size_t looked_at = 0;
  for (const auto& [round, since, shard] : index_.out()) {
    if (++looked_at > kSparesMax || round >= end) break;
    const ShardLease& lease = leases_.at(shard);
    const bool is_late = (is_idle && sessions_.last_tick() - since >= patience) ||
                         placement_.is_quiet(sessions_.at(lease.holder));
    if (!is_late || lease.holder == id || shadow_leases_.at(shard).state != LeaseState::kFree) {
      continue;
    }
    const std::optional<AuditPiece> piece = piece_out(shard);
    if (!piece) continue;
    if (!make_room(id, session)) return false;
    shadows_[shard] = {*piece, true, false};
    placement_.lend_shadow(shard, id, base_of(*piece));
    return true;
  }
  return false;
}

void Bag::session_gone(SessionId id) {
  due_.erase(id);
  hungry_.erase(id);
  has_news_ = true;
}

// ---- Time --------------------------------------------------------------------------------------

void Bag::tick() {
  has_news_ = true;
  seekers_left_ = kSeekersMax;
  look_for_referee();
  for (const SessionId id : hungry_) {
    SessionState& session = sessions_.at(id);
    if (leases_.count_held_by(id) > 0 || !session.no_shards.empty()) continue;
    session.no_shards = fmt::format("all of the {} are being trained by others",
                                    counted(run_.map.output_shards(), "shard"));
  }
}

void Bag::look_for_referee() {
  for_referee_.clear();
  std::size_t looked_at = 0;
  for (const AuditPiece& piece : work_.wanted()) {
    if (++looked_at > kAuditsMax) break;
    const bool has_somebody = std::ranges::any_of(sessions_.all(), [&](const auto& entry) {
      const SessionState& session = entry.second;
      return !session.is_referee() && may_work(session) &&
             work_.may_audit(piece, session.standing.identity, session.standing,
                             session.is_trusted());
    });
    if (!has_somebody) for_referee_.insert(piece);
  }
  wants_referee_ = !for_referee_.empty();
}

}  // namespace gleaner
