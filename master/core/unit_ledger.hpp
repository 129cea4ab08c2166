// Units on their way: their numbers, and what is out with whom. The units stand in their sessions.
// Used from the core only.
// Invariants
// - A unit is answered once, by the session that it was sent to.
// - Each unit sent ends in exactly one counter of its volunteer's account.
#pragma once

#include <cstdint>

#include "common/limits.hpp"
#include "master/core/core_config.hpp"
#include "master/core/events.hpp"
#include "master/core/session.hpp"
#include "master/core/sessions.hpp"

namespace gleaner {

// Examples of an evaluation that one unit scores, without a hidden layer, and the units that this
// takes for one shard.
inline constexpr std::uint32_t kScoreChunk = kBatchExamplesMax;
std::uint32_t score_chunks(const CoreConfig& config);
// The threads that a volunteer says it has, within bounds.
std::uint32_t threads_of(const SessionState& session);

class UnitLedger {
 public:
  // All of it outlives the ledger.
  UnitLedger(const RunSetup& run, Outbox& outbox, Sessions& sessions)
      : run_(run), outbox_(outbox), sessions_(sessions) {}

  // Sends the unit, which gets a number, in the message: a TrainUnit, EvalUnit or InputUnit.
  void send(SessionId id, SessionState& session, UnitInFlight unit, Message message);
  // Takes the unit out of the session if it is out and of this kind.
  [[nodiscard]] Result<UnitInFlight> take(SessionState& session, UnitId id,
                                          UnitInFlight::Kind kind);
  // The lease is over, and so are its units.
  void cancel(SessionState& session, const LeaseRef& lease);

  // Whether some unit has had the number. One that is out no more may have been cancelled while its
  // answer was on its way.
  [[nodiscard]] bool was_sent(UnitId id) const { return raw(id) <= last_unit_; }

  // Whether the answer has as many best neurons of the unit's shards as it should.
  [[nodiscard]] bool fits(const UnitInFlight& unit, const EvalResult& result) const;

  // -- without a hidden layer; `is_again`: under a shadow lease
  // Has the shard trained over the round.
  void send_round(SessionId id, SessionState& session, const LeaseRef& lease, RoundIndex round,
                  bool is_again);
  // Has the shard scored on all of an evaluation's examples.
  void send_scoring(SessionId id, SessionState& session, const LeaseRef& lease,
                    RoundIndex checkpoint, bool is_again);
  // An error where the result is not one of the shard-round.
  [[nodiscard]] static Result<void> check(const UnitInFlight& unit, const UnitResult& result);
  // Takes what a result tells about the volunteer's speed.
  void measure(SessionState& session, const UnitInFlight& unit, std::uint64_t compute_us) const;

 private:
  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  std::uint64_t last_unit_ = 0;
};

}  // namespace gleaner
