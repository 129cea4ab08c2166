#include "master/core/audits/audits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gleaner {

// ---- Claims ------------------------------------------------------------------------------------

Audits::Case& Audits::case_of(SessionId holder, const SessionState& session) {
  const auto known = by_holder_.find(holder);
  if (known != by_holder_.end()) return cases_.at(known->second);
  const CaseId id = next_case_++;
  by_holder_.emplace(holder, id);
  Case& audit_case = cases_[id];
  audit_case.id = id;
  audit_case.who = session.who(holder);
  return audit_case;
}

Audits::ShardWork& Audits::work_on(Case& audit_case, ShardId shard, RoundIndex round) {
  const auto [work, is_new] = audit_case.shards.try_emplace(shard, ShardWork{round, 0, 0});
  if (is_new) cases_on_[shard].insert(audit_case.id);
  return work->second;
}

void Audits::opened(Case& audit_case, const std::vector<LeaseRef>& shards, RoundIndex round) {
  for (const LeaseRef& lease : shards) ++work_on(audit_case, lease.shard, round).open;
  ++audit_case.open;
  ++open_in_[round];
  due_.insert(contending_.begin(), contending_.end());
}

void Audits::confirmed(Case& audit_case, const std::vector<LeaseRef>& shards, RoundIndex round) {
  for (const LeaseRef& lease : shards) --audit_case.shards.at(lease.shard).open;
  --audit_case.open;
  closed_in(round);
  due_.insert(contending_.begin(), contending_.end());
}

void Audits::closed_in(RoundIndex round) {
  const auto open = open_in_.find(round);
  if (--open->second == 0) open_in_.erase(open);
}

void Audits::answered(SessionId holder, const SessionState& session, AuditedPiece piece) {
  Case& audit_case = case_of(holder, session);
  // Decisions rest on evaluations, so that all of them are audited.
  piece.is_excused = piece.unit.kind == UnitInFlight::Kind::kTrain &&
                     !lot_.is_drawn(audit_case.who.identity, piece.round);
  if (!piece.is_excused) {
    opened(audit_case, piece.unit.leases, piece.round);
    for (const LeaseRef& lease : piece.unit.leases) ++audit_case.shards.at(lease.shard).pending;
  }
  audit_case.pieces.push_back(std::move(piece));
  mark(audit_case);
}

bool Audits::is_over(const AuditedPiece& piece) const {
  return piece.round < checkpoint_ || piece.is_excused ||
         (piece.is_confirmed && piece.unit.kind == UnitInFlight::Kind::kEvaluate);
}

void Audits::count_pending(Case& audit_case) {
  for (auto& [shard, work] : audit_case.shards) work.pending = 0;
  for (std::uint64_t i = audit_case.next_piece - audit_case.first_piece;
       i < audit_case.pieces.size(); ++i) {
    const AuditedPiece& piece = audit_case.pieces[i];
    if (is_over(piece)) continue;
    for (const LeaseRef& lease : piece.unit.leases) {
      ++work_on(audit_case, lease.shard, piece.round).pending;
    }
  }
}

void Audits::committed(SessionId holder, const SessionState& session, const CommitKey& commit,
                       const Fingerprint& content) {
  Case& audit_case = case_of(holder, session);
  mark(audit_case);
  const auto& [round, shard] = commit;
  CommitClaim& claim = audit_case.commits[commit];
  claim.is_excused = !lot_.is_drawn(audit_case.who.identity, round);
  // The auditor may have been sooner.
  const std::optional<Fingerprint> again = std::exchange(claim.again, std::nullopt);
  if (!claim.is_excused && (claim.claimed.empty() || again)) {
    opened(audit_case, {{shard, LeaseEpoch{}}}, round);
  }
  if (!std::ranges::count(claim.claimed, content)) claim.claimed.push_back(content);
  if (again) check_commit(audit_case, commit, *again);
}

void Audits::begin_no_later(Case& audit_case, ShardId shard, RoundIndex round) {
  const auto work = audit_case.shards.find(shard);
  if (work == audit_case.shards.end() || work->second.first_round <= round) return;
  work->second.first_round = round;
  audit_case.dissent.reset();
  dismiss_auditor(audit_case);
}

void Audits::dispute(const CommitKey& commit, SessionId holder) {
  const auto& [round, shard] = commit;
  audit_after_all(round);
  const auto held = by_holder_.find(holder);
  if (held == by_holder_.end()) return;
  begin_no_later(cases_.at(held->second), shard, round);
}

void Audits::audit_from_last_commit(Case& audit_case, ShardId shard) {
  const ShardLease& lease = placement_.leases().at(shard);
  if (lease.holder != audit_case.who.session) return;
  const RoundIndex last = lease.next_commit;
  bool is_beyond = false;
  for (AuditedPiece& piece : audit_case.pieces) {
    const bool is_on =
        std::ranges::any_of(piece.unit.leases, [&](const LeaseRef& l) { return l.shard == shard; });
    if (!is_on || piece.round <= last || piece.is_excused) continue;
    // The earlier round waits for the piece. Otherwise an auditor could come too late to begin
    // there.
    if (piece.is_open()) {
      closed_in(piece.round);
      ++open_in_[last];
    }
    piece.round = last;
    is_beyond = true;
  }
  if (!is_beyond) return;
  draw_excused(audit_case, last);
  begin_no_later(audit_case, shard, last);
}

// ---- The same again ----------------------------------------------------------------------------

std::optional<std::uint64_t> Audits::next_of(const Case& audit_case) const {
  std::uint64_t number = audit_case.next_piece;
  const std::uint64_t end = audit_case.first_piece + audit_case.pieces.size();
  while (number < end && is_over(audit_case.pieces[number - audit_case.first_piece])) ++number;
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
    const Case& audit_case = cases_.at(id);
    const std::optional<std::uint64_t> number = next_of(audit_case);
    if (!number) continue;
    const AuditedPiece& piece = audit_case.pieces[*number - audit_case.first_piece];
    UnitInFlight unit = piece.unit;
    unit.audit = UnitInFlight::Audit{id, *number, audit_case.stint};
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
  Case& audit_case = cases_.at(unit.audit->case_id);
  mark(audit_case);
  audit_case.next_piece = unit.audit->piece + 1;
  for (const LeaseRef& lease : unit.leases) --audit_case.shards.at(lease.shard).pending;
  if (unit.kind != UnitInFlight::Kind::kTrain) return;
  for (const LeaseRef& lease : unit.leases) {
    placement_.shadows().at(lease.shard).next_batch = unit.first + unit.batches;
  }
}

void Audits::answered_again(const UnitInFlight& unit, const Fingerprint& answer) {
  const auto found = cases_.find(unit.audit->case_id);
  // The case is closed, or its audit has begun again.
  if (found == cases_.end() || found->second.stint != unit.audit->stint) return;
  Case& audit_case = found->second;
  const std::uint64_t number = unit.audit->piece;
  if (number < audit_case.first_piece ||
      number >= audit_case.first_piece + audit_case.pieces.size())
    return;
  AuditedPiece& piece = audit_case.pieces[number - audit_case.first_piece];
  mark(audit_case);
  if (!judge_claim(audit_case, {number, {}}, piece.claimed, answer)) return;
  if (piece.is_confirmed) return;
  piece.is_confirmed = true;
  confirmed(audit_case, piece.unit.leases, piece.round);
  if (piece.unit.kind == UnitInFlight::Kind::kEvaluate) evaluations_.push_back(piece);
}

void Audits::committed_again(SessionId auditor, const CommitKey& commit,
                             const Fingerprint& content) {
  const auto serves = shadow_of_.find(commit.second);
  if (serves == shadow_of_.end()) return;
  Case& audit_case = cases_.at(serves->second);
  if (audit_case.auditor != auditor) return;
  check_commit(audit_case, commit, content);
}

void Audits::check_commit(Case& audit_case, const CommitKey& key, const Fingerprint& again) {
  mark(audit_case);
  CommitClaim& claim = audit_case.commits[key];
  for (const Fingerprint& claimed : claim.claimed) {
    if (!judge_claim(audit_case, {std::nullopt, key}, claimed, again)) return;
  }
  const bool was_open = claim.is_open();
  claim.again = again;
  if (!was_open) return;
  confirmed(audit_case, {{key.second, LeaseEpoch{}}}, key.first);
  const SessionState& auditor = sessions_.at(*audit_case.auditor);
  confirmed_by_[key] = {auditor.standing.identity, auditor.name()};
}

// ---- Differences -------------------------------------------------------------------------------

bool Audits::judge_claim(Case& audit_case, const Place& place, const Fingerprint& claimed,
                         const Fingerprint& again) {
  const SessionState* const auditor =
      audit_case.auditor ? sessions_.find(*audit_case.auditor) : nullptr;
  const bool is_same = claimed == again;
  if (auditor != nullptr && auditor->is_trusted()) {
    // A trusted volunteer's answer decides.
    if (audit_case.dissent && audit_case.dissent->place == place) {
      if (audit_case.dissent->answer != again)
        convict(audit_case.dissent->auditor, audit_case, place);
      audit_case.dissent.reset();
    }
    if (!is_same) convict(audit_case.who, audit_case, place);
    return is_same;
  }
  if (is_same) return true;
  if (auditor != nullptr)
    audit_case.dissent = Dissent{place, again, auditor->who(*audit_case.auditor)};
  outbox_.log(LogLevel::kWarning, "audit_differs",
              fmt::format("{} of {} differs from what {} gets: a trusted volunteer does it again "
                          "and decides",
                          describe(audit_case, place), audit_case.who.name,
                          auditor == nullptr ? "another" : auditor->name()));
  dismiss_auditor(audit_case);
  return false;
}

std::string Audits::describe(const Case& audit_case, const Place& place) {
  if (!place.piece) {
    const auto& [round, shard] = place.commit;
    return fmt::format("the commit of shard {} for round {}", raw(shard), round);
  }
  const UnitInFlight& unit = audit_case.pieces[*place.piece - audit_case.first_piece].unit;
  if (unit.kind == UnitInFlight::Kind::kEvaluate) {
    return fmt::format("the scores of test examples {} to {}", unit.eval_begin,
                       unit.eval_begin + unit.examples - 1);
  }
  return fmt::format("the answer for batches {} to {}", unit.first, unit.first + unit.batches - 1);
}

void Audits::convict(const Volunteer& who, const Case& audit_case, const Place& place) {
  convict({who, describe(audit_case, place) + " is not what a trusted volunteer gets",
           who.session == audit_case.who.session});
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
  // Pieces of folded rounds may stand behind others in the list.
  return piece.is_excused && piece.round >= checkpoint_ && piece.round <= last;
}

bool Audits::has_excused(const Case& audit_case, RoundIndex last) const {
  return std::ranges::any_of(audit_case.pieces,
                             [&](const AuditedPiece& piece) { return is_excused(piece, last); }) ||
         std::ranges::any_of(audit_case.commits, [&](const auto& entry) {
           return entry.second.is_excused && entry.first.first <= last;
         });
}

std::vector<KeyId> Audits::excused_in(RoundIndex round) const {
  std::set<KeyId> excused;
  for (const auto& [id, audit_case] : cases_) {
    if (has_excused(audit_case, round)) excused.insert(audit_case.who.identity);
  }
  return {excused.begin(), excused.end()};
}

bool Audits::audit_after_all(RoundIndex round) {
  bool is_any = false;
  for (auto& [id, audit_case] : cases_) is_any = draw_excused(audit_case, round) || is_any;
  return is_any;
}

bool Audits::draw_excused(Case& audit_case, RoundIndex last) {
  if (!has_excused(audit_case, last)) return false;
  const auto open = [&](const std::vector<LeaseRef>& leases, RoundIndex first) {
    lot_.draw(audit_case.who.identity, first);
    opened(audit_case, leases, first);
    for (const LeaseRef& lease : leases) {
      RoundIndex& begin = audit_case.shards.at(lease.shard).first_round;
      if (first >= begin) continue;
      begin = first;
      audit_case.dissent.reset();
    }
  };
  for (AuditedPiece& piece : audit_case.pieces) {
    if (!is_excused(piece, last)) continue;
    piece.is_excused = false;
    open(piece.unit.leases, piece.round);
  }
  for (auto& [key, claim] : audit_case.commits) {
    const auto& [first, shard] = key;
    if (first > last || !std::exchange(claim.is_excused, false)) continue;
    claim.again.reset();  // of an auditor on its way to a later round
    open({{shard, LeaseEpoch{}}}, first);
  }
  dismiss_auditor(audit_case);
  return true;
}

void Audits::count_confirmed_rounds(const Case& audit_case, RoundIndex checkpoint) {
  std::set<RoundIndex> rounds;
  for (const auto& [key, claim] : audit_case.commits) {
    const RoundIndex round = key.first;
    if (round < checkpoint && !claim.claimed.empty() && claim.again) rounds.insert(round);
  }
  for (std::size_t i = 0; i < rounds.size(); ++i) lot_.confirmed(audit_case.who.identity);
}

void Audits::decided(RoundIndex checkpoint) {
  checkpoint_ = checkpoint;
  look_at_all();
  lot_.forget_before(checkpoint);
  std::erase_if(confirmed_by_, [&](const auto& entry) { return entry.first.first < checkpoint; });
  for (auto& [id, audit_case] : cases_) {
    count_confirmed_rounds(audit_case, checkpoint);
    while (!audit_case.pieces.empty() && audit_case.pieces.front().round < checkpoint) {
      audit_case.pieces.pop_front();
      ++audit_case.first_piece;
    }
    audit_case.next_piece = std::max(audit_case.next_piece, audit_case.first_piece);
    for (auto& [shard, work] : audit_case.shards) {
      work.first_round = std::max(work.first_round, checkpoint);
      // The shadow still downloads from a checkpoint that the fold removes.
      const ShardLease& shadow = placement_.shadows().at(shard);
      const bool is_late = shadow.state == LeaseState::kLoading && shadow.base_round < checkpoint;
      if (is_late && serves(shard, id)) release(shard);
    }
    count_pending(audit_case);
    std::erase_if(audit_case.commits,
                  [&](const auto& entry) { return entry.first.first < checkpoint; });
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
  for (const auto& [id, audit_case] : cases_) {
    if (audit_case.open == 0) continue;
    if (!audit_case.auditor)
      return fmt::format("somebody to do again what {} has done", audit_case.who.name);
    return fmt::format("{} to do again what {} has done", sessions_.name_of(*audit_case.auditor),
                       audit_case.who.name);
  }
  return "";
}

}  // namespace gleaner
