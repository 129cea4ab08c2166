#include "master/core/audits/audits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gleaner {

// ---- Claims ------------------------------------------------------------------------------------

Audits::Case& Audits::case_of(SessionId holder, const SessionState& session) {
  const auto known = by_holder_.find(holder);
  if (known != by_holder_.end()) return cases_.at(known->second);
  const CaseId id = next_case_++;
  by_holder_.emplace(holder, id);
  Case& own = cases_[id];
  own.id = id;
  own.who = session.who(holder);
  return own;
}

Audits::ShardWork& Audits::work_on(Case& own, ShardId shard, RoundIndex round) {
  const auto [work, is_new] = own.shards.try_emplace(shard, ShardWork{round, 0, 0});
  if (is_new) cases_on_[shard].insert(own.id);
  return work->second;
}

void Audits::opened(Case& own, const std::vector<LeaseRef>& shards, RoundIndex round) {
  for (const LeaseRef& lease : shards) ++work_on(own, lease.shard, round).open;
  ++own.open;
  ++open_in_[round];
  due_.insert(contending_.begin(), contending_.end());
}

void Audits::confirmed(Case& own, const std::vector<LeaseRef>& shards, RoundIndex round) {
  for (const LeaseRef& lease : shards) --own.shards.at(lease.shard).open;
  --own.open;
  closed_in(round);
  due_.insert(contending_.begin(), contending_.end());
}

void Audits::closed_in(RoundIndex round) {
  const auto open = open_in_.find(round);
  if (--open->second == 0) open_in_.erase(open);
}

void Audits::answered(SessionId holder, const SessionState& session, AuditedPiece piece) {
  Case& own = case_of(holder, session);
  // Evaluations decide, so that all of them are audited.
  piece.is_excused = piece.unit.kind == UnitInFlight::Kind::kTrain &&
                     !lot_.is_drawn(own.who.identity, piece.round);
  if (!piece.is_excused) {
    opened(own, piece.unit.leases, piece.round);
    for (const LeaseRef& lease : piece.unit.leases) ++own.shards.at(lease.shard).pending;
  }
  own.pieces.push_back(std::move(piece));
  mark(own);
}

bool Audits::is_over(const AuditedPiece& piece) const {
  return piece.round < checkpoint_ || piece.is_excused ||
         (piece.is_confirmed && piece.unit.kind == UnitInFlight::Kind::kEvaluate);
}

void Audits::count_pending(Case& own) {
  for (auto& [shard, work] : own.shards) work.pending = 0;
  for (std::uint64_t i = own.next_piece - own.first_piece; i < own.pieces.size(); ++i) {
    const AuditedPiece& piece = own.pieces[i];
    if (is_over(piece)) continue;
    for (const LeaseRef& lease : piece.unit.leases) {
      ++work_on(own, lease.shard, piece.round).pending;
    }
  }
}

void Audits::committed(SessionId holder, const SessionState& session, const CommitKey& commit,
                       const Fingerprint& content) {
  Case& own = case_of(holder, session);
  mark(own);
  const auto& [round, shard] = commit;
  CommitClaim& claim = own.commits[commit];
  claim.is_excused = !lot_.is_drawn(own.who.identity, round);
  // The auditor may have been sooner.
  const std::optional<Fingerprint> again = std::exchange(claim.again, std::nullopt);
  if (!claim.is_excused && (claim.claimed.empty() || again)) {
    opened(own, {{shard, LeaseEpoch{}}}, round);
  }
  if (!std::ranges::count(claim.claimed, content)) claim.claimed.push_back(content);
  if (again) check_commit(own, commit, *again);
}

void Audits::begin_no_later(Case& own, ShardId shard, RoundIndex round) {
  const auto work = own.shards.find(shard);
  if (work == own.shards.end() || work->second.first_round <= round) return;
  work->second.first_round = round;
  own.dissent.reset();
  dismiss_auditor(own);
}

void Audits::dispute(const CommitKey& commit, SessionId holder) {
  const auto& [round, shard] = commit;
  audit_after_all(round);
  const auto held = by_holder_.find(holder);
  if (held == by_holder_.end()) return;
  begin_no_later(cases_.at(held->second), shard, round);
}

void Audits::audit_from_last_commit(Case& own, ShardId shard) {
  const ShardLease& lease = placement_.leases().at(shard);
  if (lease.holder != own.who.session) return;
  const RoundIndex last = lease.next_commit;
  bool is_beyond = false;
  for (AuditedPiece& piece : own.pieces) {
    const bool is_on =
        std::ranges::any_of(piece.unit.leases, [&](const LeaseRef& l) { return l.shard == shard; });
    if (!is_on || piece.round <= last || piece.is_excused) continue;
    // That round waits for it, or the auditor could come too late to begin there.
    if (piece.is_open()) {
      closed_in(piece.round);
      ++open_in_[last];
    }
    piece.round = last;
    is_beyond = true;
  }
  if (!is_beyond) return;
  draw_excused(own, last);
  begin_no_later(own, shard, last);
}

// ---- The same again ----------------------------------------------------------------------------

std::optional<std::uint64_t> Audits::next_of(const Case& own) const {
  std::uint64_t number = own.next_piece;
  const std::uint64_t end = own.first_piece + own.pieces.size();
  while (number < end && is_over(own.pieces[number - own.first_piece])) ++number;
  return number < end ? std::optional(number) : std::nullopt;
}

bool Audits::serves(ShardId shard, CaseId id) const {
  const auto found = shadow_of_.find(shard);
  return found != shadow_of_.end() && found->second == id;
}

std::optional<UnitInFlight> Audits::next(SessionId auditor) const {
  const LeaseTable& shadows = placement_.shadows();
  const auto audited = by_auditor_.find(auditor);
  if (audited == by_auditor_.end()) return std::nullopt;
  for (const CaseId id : audited->second) {
    const Case& own = cases_.at(id);
    const std::optional<std::uint64_t> number = next_of(own);
    if (!number) continue;
    const AuditedPiece& piece = own.pieces[*number - own.first_piece];
    UnitInFlight unit = piece.unit;
    unit.audit = UnitInFlight::Audit{id, *number, own.stint};
    bool is_ready = true;
    for (LeaseRef& lease : unit.leases) {
      const ShardLease& shadow = shadows.at(lease.shard);
      is_ready = is_ready && serves(lease.shard, id) && shadow.state == LeaseState::kReady &&
                 shadow.next_batch == piece.unit.first;
      lease.epoch = shadow.epoch;
    }
    if (is_ready) return unit;
  }
  return std::nullopt;
}

void Audits::issued(const UnitInFlight& unit) {
  Case& own = cases_.at(unit.audit->case_id);
  mark(own);
  own.next_piece = unit.audit->piece + 1;
  for (const LeaseRef& lease : unit.leases) --own.shards.at(lease.shard).pending;
  if (unit.kind != UnitInFlight::Kind::kTrain) return;
  for (const LeaseRef& lease : unit.leases) {
    placement_.shadows().at(lease.shard).next_batch = unit.first + unit.batches;
  }
}

void Audits::answered_again(const UnitInFlight& unit, const Fingerprint& answer) {
  const auto found = cases_.find(unit.audit->case_id);
  // The case is closed, or is done from the start, by somebody else or the same one.
  if (found == cases_.end() || found->second.stint != unit.audit->stint) return;
  Case& own = found->second;
  const std::uint64_t number = unit.audit->piece;
  if (number < own.first_piece || number >= own.first_piece + own.pieces.size()) return;
  AuditedPiece& piece = own.pieces[number - own.first_piece];
  mark(own);
  if (!agree(own, {number, {}}, piece.claimed, answer)) return;
  if (piece.is_confirmed) return;
  piece.is_confirmed = true;
  confirmed(own, piece.unit.leases, piece.round);
  if (piece.unit.kind == UnitInFlight::Kind::kEvaluate) evaluations_.push_back(piece);
}

void Audits::committed_again(SessionId auditor, const CommitKey& commit,
                             const Fingerprint& content) {
  const auto serves = shadow_of_.find(commit.second);
  if (serves == shadow_of_.end()) return;
  Case& own = cases_.at(serves->second);
  if (own.auditor != auditor) return;
  check_commit(own, commit, content);
}

void Audits::check_commit(Case& own, const CommitKey& key, const Fingerprint& again) {
  mark(own);
  CommitClaim& claim = own.commits[key];
  for (const Fingerprint& claimed : claim.claimed) {
    if (!agree(own, {std::nullopt, key}, claimed, again)) return;
  }
  const bool was_open = claim.is_open();
  claim.again = again;
  if (!was_open) return;
  confirmed(own, {{key.second, LeaseEpoch{}}}, key.first);
  const SessionState& auditor = sessions_.at(*own.auditor);
  confirmed_by_[key] = {auditor.standing.identity, auditor.name()};
}

// ---- Differences -------------------------------------------------------------------------------

bool Audits::agree(Case& own, const Place& place, const Fingerprint& claimed,
                   const Fingerprint& again) {
  const SessionState* const auditor = own.auditor ? sessions_.find(*own.auditor) : nullptr;
  const bool is_same = claimed == again;
  if (auditor != nullptr && auditor->is_trusted()) {
    // Its word decides.
    if (own.dissent && own.dissent->place == place) {
      if (own.dissent->answer != again) convict(own.dissent->auditor, own, place);
      own.dissent.reset();
    }
    if (!is_same) convict(own.who, own, place);
    return is_same;
  }
  if (is_same) return true;
  if (auditor != nullptr) own.dissent = Dissent{place, again, auditor->who(*own.auditor)};
  outbox_.log(LogLevel::kWarning, "audit_differs",
              fmt::format("{} of {} differs from what {} gets: a trusted volunteer does it again "
                          "and decides",
                          describe(own, place), own.who.name,
                          auditor == nullptr ? "another" : auditor->name()));
  dismiss_auditor(own);
  return false;
}

std::string Audits::describe(const Case& own, const Place& place) {
  if (!place.piece) {
    const auto& [round, shard] = place.commit;
    return fmt::format("the commit of shard {} for round {}", raw(shard), round);
  }
  const UnitInFlight& unit = own.pieces[*place.piece - own.first_piece].unit;
  if (unit.kind == UnitInFlight::Kind::kEvaluate) {
    return fmt::format("the scores of test examples {} to {}", unit.eval_begin,
                       unit.eval_begin + unit.examples - 1);
  }
  return fmt::format("the answer for batches {} to {}", unit.first, unit.first + unit.batches - 1);
}

void Audits::convict(const Volunteer& who, const Case& own, const Place& place) {
  convict({who, describe(own, place) + " is not what a trusted volunteer gets",
           who.session == own.who.session});
}

// ---- What follows ------------------------------------------------------------------------------

void Audits::session_gone(SessionId id) {
  if (const auto held = by_holder_.find(id); held != by_holder_.end()) {
    Case& left = cases_.at(held->second);
    mark(left);
    left.has_left = true;
    by_holder_.erase(held);
    const auto shards = left.shards;
    for (const auto& [shard, work] : shards) audit_from_last_commit(left, shard);
    stand_by(left);
  }
  auditor_leaves(id);
}

void Audits::auditor_leaves(SessionId id) {
  const auto audited = by_auditor_.find(id);
  if (audited == by_auditor_.end()) return;
  const std::set<CaseId> cases = audited->second;
  for (const CaseId one : cases) dismiss_auditor(cases_.at(one));
}

bool Audits::is_excused(const AuditedPiece& piece, RoundIndex last) const {
  // Pieces of folded rounds stay behind others.
  return piece.is_excused && piece.round >= checkpoint_ && piece.round <= last;
}

bool Audits::has_excused(const Case& own, RoundIndex last) const {
  return std::ranges::any_of(own.pieces,
                             [&](const AuditedPiece& piece) { return is_excused(piece, last); }) ||
         std::ranges::any_of(own.commits, [&](const auto& entry) {
           return entry.second.is_excused && entry.first.first <= last;
         });
}

std::vector<KeyId> Audits::excused_in(RoundIndex round) const {
  std::set<KeyId> excused;
  for (const auto& [id, own] : cases_) {
    if (has_excused(own, round)) excused.insert(own.who.identity);
  }
  return {excused.begin(), excused.end()};
}

bool Audits::audit_after_all(RoundIndex round) {
  bool is_any = false;
  for (auto& [id, own] : cases_) is_any = draw_excused(own, round) || is_any;
  return is_any;
}

bool Audits::draw_excused(Case& own, RoundIndex last) {
  if (!has_excused(own, last)) return false;
  const auto open = [&](const std::vector<LeaseRef>& leases, RoundIndex first) {
    lot_.draw(own.who.identity, first);
    opened(own, leases, first);
    for (const LeaseRef& lease : leases) {
      RoundIndex& begin = own.shards.at(lease.shard).first_round;
      if (first >= begin) continue;
      begin = first;
      own.dissent.reset();
    }
  };
  for (AuditedPiece& piece : own.pieces) {
    if (!is_excused(piece, last)) continue;
    piece.is_excused = false;
    open(piece.unit.leases, piece.round);
  }
  for (auto& [key, claim] : own.commits) {
    const auto& [first, shard] = key;
    if (first > last || !std::exchange(claim.is_excused, false)) continue;
    claim.again.reset();  // of an auditor on its way to a later round
    open({{shard, LeaseEpoch{}}}, first);
  }
  dismiss_auditor(own);
  return true;
}

void Audits::count_confirmed_rounds(const Case& own, RoundIndex checkpoint) {
  std::set<RoundIndex> rounds;
  for (const auto& [key, claim] : own.commits) {
    const RoundIndex round = key.first;
    if (round < checkpoint && !claim.claimed.empty() && claim.again) rounds.insert(round);
  }
  for (std::size_t i = 0; i < rounds.size(); ++i) lot_.confirmed(own.who.identity);
}

void Audits::decided(RoundIndex checkpoint) {
  checkpoint_ = checkpoint;
  look_at_all();
  lot_.forget_before(checkpoint);
  std::erase_if(confirmed_by_, [&](const auto& entry) { return entry.first.first < checkpoint; });
  for (auto& [id, own] : cases_) {
    count_confirmed_rounds(own, checkpoint);
    while (!own.pieces.empty() && own.pieces.front().round < checkpoint) {
      own.pieces.pop_front();
      ++own.first_piece;
    }
    own.next_piece = std::max(own.next_piece, own.first_piece);
    for (auto& [shard, work] : own.shards) {
      work.first_round = std::max(work.first_round, checkpoint);
      // It still downloads from a checkpoint that the fold removes.
      const ShardLease& shadow = placement_.shadows().at(shard);
      const bool is_late = shadow.state == LeaseState::kLoading && shadow.base_round < checkpoint;
      if (is_late && serves(shard, id)) release(shard);
    }
    count_pending(own);
    std::erase_if(own.commits, [&](const auto& entry) { return entry.first.first < checkpoint; });
  }
}

bool Audits::is_clear(RoundIndex round) const {
  return convictions_.empty() && (open_in_.empty() || open_in_.begin()->first > round);
}

std::pair<KeyId, std::string> Audits::auditor_of(RoundIndex round, ShardId shard) const {
  const auto found = confirmed_by_.find({round, shard});
  return found == confirmed_by_.end() ? std::pair<KeyId, std::string>() : found->second;
}

std::vector<AuditedPiece> Audits::take_evaluations() {
  return std::exchange(evaluations_, {});
}

std::vector<Conviction> Audits::take_convictions() {
  return std::exchange(convictions_, {});
}

std::string Audits::waiting_for(RoundIndex round) const {
  if (is_clear(round)) return "";
  for (const auto& [id, own] : cases_) {
    if (own.open == 0) continue;
    if (!own.auditor) return fmt::format("somebody to do again what {} has done", own.who.name);
    return fmt::format("{} to do again what {} has done", sessions_.name_of(*own.auditor),
                       own.who.name);
  }
  return "";
}

}  // namespace gleaner
