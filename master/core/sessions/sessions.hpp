// Who is connected: admission, liveness, keeping in touch, departures. Used from the core only.
//
// Owns the sessions, their accounts and the list of those who have gone. What a session is worth
// for others (its leases, the units that it had not answered) is for those who own that.
// Invariants
// - At most `sessions_max` sessions are active, and no two that introduced themselves have one
//   identity.
// - A session that is not in the map is over: whatever still arrives from it is ignored.
// - At most four observers are answered between two ticks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "master/core/events/outbox.hpp"
#include "master/core/events/run_setup.hpp"
#include "master/core/sessions/accounts.hpp"
#include "master/core/sessions/session.hpp"

namespace gleaner {

class Sessions {
 public:
  // Both outlive it.
  Sessions(const RunSetup& run, Outbox& outbox, LeaseEpoch first_epoch)
      : run_(run), outbox_(outbox), first_epoch_(first_epoch) {}

  [[nodiscard]] std::map<SessionId, SessionState>& all() { return sessions_; }

  [[nodiscard]] const std::map<SessionId, SessionState>& all() const { return sessions_; }

  // Null for one that is over.
  [[nodiscard]] SessionState* find(SessionId id);
  [[nodiscard]] const SessionState* find(SessionId id) const;

  // Requires a session that is not over.
  [[nodiscard]] SessionState& at(SessionId id) { return sessions_.at(id); }

  [[nodiscard]] const SessionState& at(SessionId id) const { return sessions_.at(id); }

  // Volunteers that take part and are not leaving.
  [[nodiscard]] std::uint32_t active() const;

  // The name, or "?" for one that is over.
  [[nodiscard]] std::string name_of(SessionId id) const;

  // -- coming
  void opened(const SessionOpened& event);
  // Whether a volunteer may take part as far as its Hello goes; the protocol to speak.
  [[nodiscard]] Result<std::uint32_t> check(const SessionState& session, const Hello& hello) const;
  // The session that this identity has had until now: its connection broke unnoticed.
  [[nodiscard]] std::optional<SessionId> of_identity(const KeyId& identity) const;
  // Makes a checked volunteer active and welcomes it; kBusy when there is no room.
  Result<void> activate(SessionId id, SessionState& session, Hello hello, std::uint32_t protocol,
                        RoundIndex checkpoint);
  // Whether a tool may be told how the run stands; the protocol to speak.
  [[nodiscard]] Result<std::uint32_t> admit_observer(const SessionState& session,
                                                     const Observe& observe);

  // -- keeping in touch
  // Time has passed: observers may be answered again.
  void tick() {
    observers_ = 0;
    tick_before_ = std::exchange(last_tick_, outbox_.now());
  }

  struct Overdue {
    std::string reason;
    bool is_slow = false;  // a stranger that others waited for
  };

  // Why the session must end by now, if it must. `owes` tells whether something is awaited of it.
  [[nodiscard]] std::optional<Overdue> overdue(const SessionState& session,
                                               const std::function<bool()>& owes) const;
  // The volunteer gets no shards for CoreConfig::forget_slowness, also when it connects again.
  void hold_back(SessionState& session);

  [[nodiscard]] bool is_heartbeat_due(const SessionState& session) const {
    return outbox_.now() - session.last_said >= run_.config.heartbeat;
  }

  void send_heartbeat(SessionId id, SessionState& session, RunNews news);
  void heard(SessionState& session, const Heartbeat& heartbeat) const;
  // Nobody could do what it owed: everything that is awaited has its full time again.
  void restart_debts();

  // -- going
  // It asked to go; its shards are being handed over.
  void leaves(SessionId id, SessionState& session);

  // The sessions that asked to go.
  [[nodiscard]] const std::set<SessionId>& leaving() const { return leaving_; }

  // The session is over. Nullopt when it was.
  std::optional<SessionState> take(SessionId id);
  // One that had introduced itself is over, and `shards` that it held are free.
  void departed(const SessionState& session, const std::string& reason, std::uint32_t shards);

  // The last few that have gone, oldest first.
  [[nodiscard]] const std::deque<Departure>& gone() const { return gone_; }

  // -- accounts
  AccountRecord& account(const SessionState& session) { return accounts_.of(session); }

  std::vector<AccountRecord> hand_in_accounts();

  [[nodiscard]] std::vector<AccountRecord> accounts() const { return accounts_.all(); }

 private:
  void log_pause(SessionState& session, const std::string& paused) const;
  // How long the session may owe work before it is ended: CoreConfig::stall. A stranger that has a
  // unit gets 20 times the time that others take for a unit, since the whole run waits for it.
  [[nodiscard]] Millis patience(const SessionState& session) const;
  // The protocol to speak with a peer of these versions.
  [[nodiscard]] Result<std::uint32_t> admit(const char* who, const std::string& build,
                                            std::uint32_t protocol_min,
                                            std::uint32_t protocol_max) const;

  const RunSetup& run_;
  Outbox& outbox_;
  LeaseEpoch first_epoch_;
  std::map<SessionId, SessionState> sessions_;
  std::set<SessionId> leaving_;
  Accounts accounts_;
  std::deque<Departure> gone_;
  std::map<KeyId, Instant> held_back_until_;  // volunteers, with or without a session
  std::uint32_t observers_ = 0;               // answered since the last tick
  Instant last_tick_{}, tick_before_{};
};

}  // namespace gleaner
