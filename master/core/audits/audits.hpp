// The work of strangers, repeated by others and compared. An answer is a function of the
// volunteer's input, so that two honest answers are the same bytes. Used from the core only.
//
// Owns the cases. A *case* is the work of one holder since the checkpoint, in its order, with the
// fingerprints of its answers. The *auditor* of the case holds the same shards under shadow leases
// (Placement::shadows) and is sent the same units, so that it cannot tell that it audits. Under
// `adaptive`, work that is not drawn stays *excused* until its round is folded: if the round looks
// diverged, the work is audited after all.
//
// Invariants
// - The auditor of a case is trusted or came by another invite than the holder, and holds none of
//   the case's shards.
// - A round is clear when every answer and commit in it is confirmed or excused. Only a clear round
//   may fold.
// - An audited volunteer's word convicts nobody: after a difference a trusted volunteer repeats the
//   case, and its answer decides.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/access/sha256.hpp"
#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "master/core/core_config.hpp"
#include "master/core/fingerprint.hpp"
#include "master/core/placement.hpp"
#include "master/core/sessions.hpp"

namespace gleaner {

// Draws which rounds of which volunteers are audited. Under `adaptive` all of a stranger's first
// rounds are drawn, and later rounds by a lot that nobody can foresee without the secret. Used from
// the core only.
class AuditSampler {
 public:
  // `config` outlives it.
  explicit AuditSampler(const CoreConfig& config) : config_(config) {}

  // Whether the work of the stranger `who` in the round is audited. Drawn at the first call for a
  // round, and kept.
  [[nodiscard]] bool is_drawn(const KeyId& who, RoundIndex round);

  // Has the round audited, whatever the lot was.
  void draw(const KeyId& who, RoundIndex round) { drawn_[{round, who}] = true; }

  // All of the stranger's work in one round was confirmed.
  void confirmed(const KeyId& who) { ++confirmed_[who]; }

  void forget_before(RoundIndex checkpoint);

 private:
  // In [0, 1); a function of secret, volunteer and round.
  [[nodiscard]] double lot_of(const KeyId& who, RoundIndex round) const;

  const CoreConfig& config_;
  std::map<std::pair<RoundIndex, KeyId>, bool> drawn_;
  std::map<KeyId, std::uint32_t> confirmed_;  // rounds, in this life of the master
};

inline bool AuditSampler::is_drawn(const KeyId& who, RoundIndex round) {
  if (config_.audit == AuditMode::kAll) return true;
  const auto [drawn, is_new] = drawn_.try_emplace({round, who}, true);
  if (is_new && confirmed_[who] >= config_.newcomer_rounds) {
    drawn->second = lot_of(who, round) < config_.audit_share;
  }
  return drawn->second;
}

inline void AuditSampler::forget_before(RoundIndex checkpoint) {
  std::erase_if(drawn_, [&](const auto& entry) { return entry.first.first < checkpoint; });
}

inline double AuditSampler::lot_of(const KeyId& who, RoundIndex round) const {
  const std::array<std::uint64_t, 4> words{config_.audit_secret, who.high, who.low, round};
  Sha256 sha;
  sha.update({reinterpret_cast<const std::uint8_t*>(words.data()), sizeof words});
  std::uint64_t bits = 0;
  std::memcpy(&bits, sha.finish_bytes().data(), sizeof bits);
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

// The commit of a shard for a round.
using CommitKey = std::pair<RoundIndex, ShardId>;

// A holder's answer to a unit.
struct AuditedPiece {
  UnitInFlight unit;               // its leases are the holder's
  std::vector<ScoredNeuron> best;  // the answer to an evaluation unit; counts once confirmed
  RoundIndex round = 0;            // the round that waits for the piece
  Fingerprint claimed{};
  bool is_confirmed = false;
  bool is_excused = false;  // need not be repeated

  [[nodiscard]] bool is_open() const { return !is_confirmed && !is_excused; }
};

class Audits {
 public:
  // All of it outlives the audits.
  Audits(const RunSetup& run, Outbox& outbox, Sessions& sessions, Placement& placement)
      : run_(run), outbox_(outbox), sessions_(sessions), placement_(placement), lot_(run.config) {}

  // -- claims of an audited holder
  void answered(SessionId holder, const SessionState& session, AuditedPiece piece);
  void committed(SessionId holder, const SessionState& session, const CommitKey& commit,
                 const Fingerprint& content);
  // `holder` sent a commit that differs from the stored commit of an earlier holder. Has the work
  // of both audited, and the work of `holder` from the beginning of that round, since the store has
  // none of it.
  void dispute(const CommitKey& commit, SessionId holder);

  // -- units for the auditor
  // The next unit that the auditor can begin, with its shadow leases and `audit` set.
  [[nodiscard]] std::optional<UnitInFlight> next(SessionId auditor) const;
  void issued(const UnitInFlight& unit);
  void answered_again(const UnitInFlight& unit, const Fingerprint& answer);
  void committed_again(SessionId auditor, const CommitKey& commit, const Fingerprint& content);

  // -- what update() looks at
  // The volunteer may be able to do more or less for others.
  void heard(SessionId id);
  // The shard has more stored commits or more claims.
  void changed(ShardId shard);

  // Anything may have changed.
  void look_at_all() { is_all_due_ = true; }

  // Time has passed: looks at cases that wait for an auditor, and at some others in turn.
  void look_at_some();

  // -- consequences
  // The answer is known to be false without an audit.
  void convict(Conviction guilty) { convictions_.push_back(std::move(guilty)); }

  // Appoints auditors, lends them shards, and takes back shards that no case needs. Looks only
  // where something has changed. Returns the volunteers that may have a unit to begin.
  std::set<SessionId> update();
  void session_gone(SessionId id);
  // The volunteer audits nobody any more.
  void auditor_leaves(SessionId id);
  // Audits excused work of the rounds up to this one. False when there is none.
  bool audit_after_all(RoundIndex round);
  // The strangers with excused work in the round.
  [[nodiscard]] std::vector<KeyId> excused_in(RoundIndex round) const;
  // Rounds before `checkpoint` are folded, or about to be: audits of later work start there.
  void decided(RoundIndex checkpoint);
  [[nodiscard]] bool is_clear(RoundIndex round) const;

  // Whether the session is the auditor of a case.
  [[nodiscard]] bool is_auditor(SessionId id) const { return by_auditor_.contains(id); }

  // Key and name of the auditor that confirmed the commit. Zero when the commit was excused.
  [[nodiscard]] std::pair<KeyId, std::string> auditor_of(RoundIndex round, ShardId shard) const;
  // Evaluation units confirmed since the last call.
  [[nodiscard]] std::vector<AuditedPiece> take_evaluations();
  [[nodiscard]] std::vector<Conviction> take_convictions();

  // Whether a case waits for an auditor and none is here.
  [[nodiscard]] bool wants_referee() const { return !waiting_.empty(); }

  // Why the round cannot fold yet: "ann to do again what bob has done". Empty when it is clear.
  [[nodiscard]] std::string waiting_for(RoundIndex round) const;

 private:
  // A commit as the holder sent it, and as the auditor computed it.
  struct CommitClaim {
    std::vector<Fingerprint> claimed;  // different ones, if the holder sent it several times
    std::optional<Fingerprint> again;
    bool is_excused = false;

    [[nodiscard]] bool is_open() const { return !claimed.empty() && !again && !is_excused; }
  };

  // The place of an answer in a case: the number of a piece, or a commit.
  struct Place {
    std::optional<std::uint64_t> piece;
    CommitKey commit{};
    friend bool operator==(const Place&, const Place&) = default;
  };

  // An auditor's answer that differs. Void once the case begins with an earlier round: the auditor
  // had the rows of a commit of the holder, and that commit may be false.
  struct Dissent {
    Place place;
    Fingerprint answer{};
    Volunteer auditor;  // may turn out to have lied itself
  };

  // A shard in a case.
  struct ShardWork {
    RoundIndex first_round = 0;  // the audit begins at the start of this round
    std::uint32_t open = 0;      // answers and commits that nobody has confirmed
    std::uint32_t pending = 0;   // pieces not yet sent to the auditor

    [[nodiscard]] bool is_due() const { return open > 0 || pending > 0; }
  };

  using CaseId = std::uint64_t;

  struct Case {
    CaseId id = 0;
    Volunteer who;  // the holder
    bool has_left = false;
    std::optional<SessionId> auditor;
    // counts the case's auditors; a new auditor begins again, perhaps from other rows
    std::uint64_t stint = 0;
    std::deque<AuditedPiece> pieces;
    std::uint64_t first_piece = 0;  // the number of pieces.front()
    std::uint64_t next_piece = 0;   // the first piece not yet sent to the auditor
    std::map<CommitKey, CommitClaim> commits;
    std::map<ShardId, ShardWork> shards;
    std::uint64_t open = 0;  // unconfirmed answers and commits
    std::optional<Dissent> dissent;
  };

  Case& case_of(SessionId holder, const SessionState& session);
  // The case's work on the shard; a new entry begins with the round.
  ShardWork& work_on(Case& audit_case, ShardId shard, RoundIndex round);
  // Forgets an entry of the case's shards, and returns the next one.
  std::map<ShardId, ShardWork>::iterator forget_work(Case& audit_case,
                                                     std::map<ShardId, ShardWork>::iterator work);
  // A claim on these shards in the round is made, or confirmed.
  void opened(Case& audit_case, const std::vector<LeaseRef>& shards, RoundIndex round);
  void confirmed(Case& audit_case, const std::vector<LeaseRef>& shards, RoundIndex round);
  // One claim fewer is open in the round.
  void closed_in(RoundIndex round);
  // Counts the pieces from `next_piece` on.
  void count_pending(Case& audit_case);
  // Judges the holder's claim by the auditor's answer; false if the two differ. A trusted auditor's
  // answer then convicts the holder; another auditor is dismissed, and a trusted one decides.
  bool judge_claim(Case& audit_case, const Place& place, const Fingerprint& claimed,
                   const Fingerprint& again);

  void check_commit(Case& audit_case, const CommitKey& key, const Fingerprint& again);
  // Audits the case's excused work of rounds up to `last`. False when there is none.
  bool draw_excused(Case& audit_case, RoundIndex last);
  // The holder of the shard is gone. If it began a round without committing the round before, the
  // store lacks the rows from which it began: its work is audited from the round before.
  void audit_from_last_commit(Case& audit_case, ShardId shard);
  // The work on the shard is audited from the beginning of the round or of an earlier round.
  void begin_no_later(Case& audit_case, ShardId shard, RoundIndex round);
  // Whether the piece, or anything in the case, is excused in open rounds up to `last`.
  [[nodiscard]] bool is_excused(const AuditedPiece& piece, RoundIndex last) const;
  [[nodiscard]] bool has_excused(const Case& audit_case, RoundIndex last) const;
  // The case's confirmed rounds before `checkpoint` count for its holder.
  void count_confirmed_rounds(const Case& audit_case, RoundIndex checkpoint);
  void convict(const Volunteer& who, const Case& audit_case, const Place& place);

  // update() is to look at the case.
  void mark(const Case& audit_case) { due_.insert(audit_case.id); }

  // The next case that update() is to look at, behind `last`.
  [[nodiscard]] std::optional<CaseId> next_due(std::optional<CaseId> last);
  // Looks at the case, and erases it when it is done.
  void look_at(Case& audit_case);
  // "the answer for batches 12 to 15".
  [[nodiscard]] static std::string describe(const Case& audit_case, const Place& place);

  [[nodiscard]] bool can_audit(SessionId id, const SessionState& session,
                               const Case& audit_case) const;
  [[nodiscard]] std::optional<SessionId> choose_auditor(const Case& audit_case);
  // When two cases need one shard, the case that holds up the earlier round goes first.
  [[nodiscard]] std::pair<RoundIndex, CaseId> urgency(CaseId id) const;
  void dismiss_auditor(Case& audit_case);
  // Whether the auditor can do the rest of the case. A paused auditor would hold the round up. An
  // auditor needs memory for all shards of the case, and must hold none of them as a holder.
  [[nodiscard]] bool can_go_on(const Case& audit_case) const;
  // Gives the case an auditor if it needs one.
  void update_auditor(Case& audit_case);
  // Whether a new auditor may skip the piece: the fold of its round is decided, the piece is
  // excused (not drawn), or the piece is a confirmed evaluation.
  [[nodiscard]] bool is_over(const AuditedPiece& piece) const;
  // The piece to be sent next, by number.
  [[nodiscard]] std::optional<std::uint64_t> next_of(const Case& audit_case) const;
  // Whether the shard's shadow lease is for this case.
  [[nodiscard]] bool serves(ShardId shard, CaseId id) const;
  // Takes back shadows that cannot reach the next piece, so that they are lent again: all earlier
  // pieces are done on them, and the next piece begins elsewhere. Happens when the holder began a
  // round again, or got a shard back.
  void release_misplaced(Case& audit_case);
  // Lends the auditor the shards that it needs, and takes back the others.
  void update_shadows(Case& audit_case);
  // Whether the session holds the shard itself, not as a shadow.
  [[nodiscard]] bool holds(SessionId id, ShardId shard) const;
  // Whether the session itself holds a shard of the case that is still due.
  [[nodiscard]] bool holds_of(const Case& audit_case, SessionId id) const;
  // Hot standby (auditors.cpp): the auditor of a holder that is gone takes over the holder's
  // shards once it has done the case. Until then nobody is lent these shards.
  void stand_by(Case& audit_case);
  void go_on(const Case& audit_case, const std::vector<ShardId>& shards);
  // The heir's own case begins with the pieces that it did as an auditor.
  void inherit(SessionId heir, const Case& from);
  [[nodiscard]] bool is_standby(ShardId shard, CaseId id) const;
  void release(ShardId shard);
  // Whether the case still needs the shard at its auditor.
  [[nodiscard]] bool needs(const Case& audit_case, ShardId shard, const ShardWork& work);

  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  Placement& placement_;

  AuditSampler lot_;
  std::map<CaseId, Case> cases_;
  std::map<SessionId, CaseId> by_holder_;  // holders that have not left
  std::map<SessionId, std::set<CaseId>> by_auditor_;
  std::map<ShardId, CaseId> shadow_of_;  // whose case a shadow lease serves
  std::map<CommitKey, std::pair<KeyId, std::string>> confirmed_by_;
  std::vector<AuditedPiece> evaluations_;
  std::vector<Conviction> convictions_;
  CaseId next_case_ = 0;
  RoundIndex checkpoint_ = 0;                    // all earlier rounds are folded, or about to be
  std::map<RoundIndex, std::uint64_t> open_in_;  // answers and commits that nobody has confirmed
  // -- for update()
  std::set<CaseId> due_;
  bool is_all_due_ = false;
  std::map<ShardId, std::set<CaseId>> cases_on_;  // with work on the shard
  std::set<CaseId> waiting_;                      // for somebody who can audit them
  std::set<CaseId> contending_;                   // for a shard that another is audited on
  std::set<SessionId> may_begin_;                 // something, since the last update()
  std::size_t candidates_ = 0;                    // for auditors, looked at in this update
  SessionId last_auditor_{};
  CaseId last_looked_at_ = 0;  // with the passing of time
};

}  // namespace gleaner
