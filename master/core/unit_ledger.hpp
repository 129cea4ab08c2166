// Numbers units and tracks units that are out. The units themselves stand in their sessions. Used
// from the core only.
//
// Invariants
// - A unit is answered once, by the session that it was sent to.
// - Each unit sent ends in exactly one counter of its volunteer's account.
#pragma once

#include <cstdint>

#include "master/core/core_config.hpp"
#include "master/core/events.hpp"
#include "master/core/session.hpp"
#include "master/core/sessions.hpp"

namespace gleaner {

class UnitLedger {
 public:
  // All of it outlives the ledger.
  UnitLedger(const RunSetup& run, Outbox& outbox, Sessions& sessions)
      : run_(run), outbox_(outbox), sessions_(sessions) {}

  // Numbers the unit and sends it in the message: a TrainUnit, EvalUnit or InputUnit.
  void send(SessionId id, SessionState& session, UnitInFlight unit, Message message);
  // Takes the unit from the session if it is out and of this kind.
  [[nodiscard]] Result<UnitInFlight> take(SessionState& session, UnitId id,
                                          UnitInFlight::Kind kind);
  // Cancels the units of a lease that is over.
  void cancel(SessionState& session, const LeaseRef& lease);

  // Whether a unit has had this number. A unit that is no longer out may have been cancelled while
  // its answer was on its way.
  [[nodiscard]] bool was_sent(UnitId id) const { return raw(id) <= last_unit_; }

  // Whether the answer has the right number of best neurons, all from the unit's shards.
  [[nodiscard]] bool fits(const UnitInFlight& unit, const EvalResult& result) const;

 private:
  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  std::uint64_t last_unit_ = 0;
};

}  // namespace gleaner
