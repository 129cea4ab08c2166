// The bag of a run without a hidden layer: which shard-round each volunteer does next. Used from
// the core only.
//
// The next shard-round of a shard depends on the shard's last commit alone. A volunteer has in hand
// a shard-round for each thread and a few more, so that no thread waits for the link. It keeps the
// shards that it has trained in memory: they are *idle*. It trains them again in the next round,
// unless another volunteer takes them first. An idle shard has no state beyond its commits.
//
// A volunteer gets work of the earliest round first. Within a round it gets, in this order: its own
// idle shards, free shards, audits, and shards that are idle at others. When nothing is left, a
// trusted volunteer does a *spare*: it repeats a shard-round that another volunteer has had for
// long. The first of the two to answer goes on with the shard.
//
// Invariants
// - A volunteer holds a shard under one lease at a time.
// - A lease in Placement::shadows is for a spare, or for a piece that ShardRounds wants done again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "master/core/bag/lease_index.hpp"
#include "master/core/bag/shard_rounds.hpp"
#include "master/core/placement.hpp"
#include "master/core/rounds.hpp"
#include "master/core/sessions.hpp"
#include "master/core/unit_ledger.hpp"

namespace gleaner {

class Bag {
 public:
  // All of it outlives the bag.
  Bag(const RunSetup& run, Outbox& outbox, Sessions& sessions, Placement& placement,
      UnitLedger& ledger, ShardRounds& work, Rounds& rounds, RoundMeter& meter);

  // Gives volunteers work where something has changed.
  void lend();

  // -- events
  // The volunteer may take more or less work.
  void heard(SessionId id) { due_.insert(id); }

  // Anything may have changed.
  void look_at_all() { is_all_due_ = true; }

  void tick();
  void session_gone(SessionId id);

  // -- answers. An error ends the session.
  Result<void> receive(SessionId id, SessionState& session, UnitResult& result);
  Result<void> receive(SessionId id, SessionState& session, EvalResult& result);
  Result<void> receive(SessionId id, SessionState& session, const HandOver& part);

  // Whether an audit that the run waits for can be done by nobody here.
  [[nodiscard]] bool wants_referee() const { return wants_referee_; }

 private:
  // The purpose of a shadow lease.
  struct Shadow {
    AuditPiece piece;
    bool is_spare = false;
    bool is_begun = false;
  };

  using Piece = LeaseIndex::Piece;

  // Files the shard's lease in the index by its present state.
  void file(ShardId shard);
  // Files changed leases, and begins units on shards that are loaded.
  void file_changed();
  void shadow_changed(ShardId shard);
  // Whether the holder has the shard loaded and no unit out on it.
  [[nodiscard]] bool is_idle(const ShardLease& lease, ShardId shard) const;
  // Whether the store has all of the holder's work on the shard.
  [[nodiscard]] bool is_stored(const ShardLease& lease) const;
  // Whether a volunteer without work might find some.
  [[nodiscard]] bool is_anything_left() const;
  // The round of the shard's next work. Scores at a checkpoint belong to the round before it.
  [[nodiscard]] RoundIndex next_round(const ShardLease& lease, ShardId shard) const;

  // Pieces of work that the volunteer may have in hand.
  [[nodiscard]] std::size_t hands(const SessionState& session) const;
  [[nodiscard]] std::size_t in_hand(SessionId id) const;
  [[nodiscard]] bool may_work(const SessionState& session) const;
  // Whether the run lacks volunteers that are not quarantined.
  [[nodiscard]] bool is_needed(const SessionState& session) const;
  void give(SessionId id);
  // False when there is no work for the volunteer.
  bool give_one(SessionId id, SessionState& session);
  bool take_free(SessionId id, SessionState& session, ShardId shard);
  bool take_idle(SessionId id, ShardId shard);
  bool take_audit(SessionId id, SessionState& session, const AuditPiece& piece);
  // Looks for a spare in the rounds before `end`. Any volunteer may repeat the work of a holder
  // that may be dead; an idle volunteer may also repeat the work of a slow holder.
  bool take_spare(SessionId id, SessionState& session, RoundIndex end, bool is_idle);
  // The piece that the shard's holder works on, if the store has the rows to repeat it.
  [[nodiscard]] std::optional<AuditPiece> piece_out(ShardId shard) const;
  // Makes room in the volunteer's memory for one more shard.
  bool make_room(SessionId id, SessionState& session);
  [[nodiscard]] std::optional<AuditPiece> audit_for(SessionId id,
                                                    const SessionState& session) const;
  [[nodiscard]] bool may_do_again(SessionId id, const SessionState& session,
                                  const AuditPiece& piece) const;
  // An idle shard of the earliest round at the volunteer with most idle shards, and that volunteer.
  [[nodiscard]] std::optional<std::pair<Piece, SessionId>> stealable(SessionId thief) const;
  [[nodiscard]] std::optional<Piece> first_idle(SessionId id) const;
  [[nodiscard]] std::optional<Piece> first_free(SessionId id) const;

  // -- units (bag_units.cpp); `is_again`: under a shadow lease
  // Sends the unit that trains the shard over the round.
  void send_round(SessionId id, SessionState& session, const LeaseRef& lease, RoundIndex round,
                  bool is_again);
  // Sends the units that score all of an evaluation's examples on the shard.
  void send_scoring(SessionId id, SessionState& session, const LeaseRef& lease,
                    RoundIndex checkpoint, bool is_again);
  // Sends the units that come next on a shard that is ready.
  void begin(ShardId shard, SessionId id, SessionState& session);
  void begin_shadow(ShardId shard, SessionId id, SessionState& session);
  // Ends the lease and cancels its units.
  void revoke(LeaseTable& table, ShardId shard);
  void end_shadow(ShardId shard);
  // The holder has answered. The spare goes on as an audit if one is wanted, and ends otherwise.
  void review_spare(RoundIndex round, ShardId shard);
  // The spare answered first: its volunteer becomes the shard's holder.
  void swap_in_spare(ShardId shard);
  void take_spoiled();
  // Whether the unit's lease ended while its answer was on its way.
  [[nodiscard]] bool is_cancelled(const SessionState& session, UnitId unit) const;
  // The shadow lease of the unit's shard; null if there is none.
  [[nodiscard]] Shadow* shadow_of(const UnitInFlight& unit);
  [[nodiscard]] Doer doer(SessionId id, const SessionState& session) const;
  void look_for_referee();

  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  Placement& placement_;
  LeaseTable& leases_;
  LeaseTable& shadow_leases_;
  UnitLedger& ledger_;
  ShardRounds& work_;
  Rounds& rounds_;
  RoundMeter& meter_;

  LeaseIndex index_;
  std::map<ShardId, Shadow> shadows_;
  std::set<SessionId> hungry_;  // have room in hand, and found no work
  std::set<SessionId> due_;
  bool is_all_due_ = true;
  bool has_news_ = true;            // hungry volunteers may find work
  std::uint32_t seekers_left_ = 0;  // volunteers that may still look for a spare; set by a tick
  RoundIndex open_end_ = 0;         // as of the last lend()
  bool wants_referee_ = false;
  std::set<AuditPiece> for_referee_;
};

}  // namespace gleaner
