// Who is connected: admission, liveness, keeping in touch, departures. Used from the core only.
//
// Owns the sessions, their accounts and the list of those who have gone. What a session is worth
// for others (its leases, the units that it had not answered) is for those who own that.
// Invariants
// - At most `sessions_max` sessions are active besides those of this process, and no two that
//   introduced themselves have one identity. Strangers take at most places_for_strangers() of them.
// - A session that is not in the map is over: whatever still arrives from it is ignored.
// - At most four observers are answered between two ticks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/access/standing.hpp"
#include "common/limits.hpp"
#include "common/order_statistics.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "master/core/accounts.hpp"
#include "master/core/core_config.hpp"
#include "master/core/events.hpp"
#include "master/core/quarantines.hpp"
#include "master/core/reports.hpp"
#include "master/core/session.hpp"

namespace gleaner {

class Sessions {
 public:
  // Both outlive it.
  Sessions(const RunSetup& run, Outbox& outbox, LeaseEpoch first_epoch, std::set<KeyId> proven = {},
           std::set<KeyId> trained = {})
      : run_(run),
        outbox_(outbox),
        first_epoch_(first_epoch),
        proven_(std::move(proven)),
        trained_(std::move(trained)) {}

  [[nodiscard]] std::map<SessionId, SessionState>& all() { return sessions_; }

  [[nodiscard]] const std::map<SessionId, SessionState>& all() const { return sessions_; }

  // Null for one that is over.
  [[nodiscard]] SessionState* find(SessionId id);
  [[nodiscard]] const SessionState* find(SessionId id) const;

  // Requires a session that is not over.
  [[nodiscard]] SessionState& at(SessionId id) { return sessions_.at(id); }

  [[nodiscard]] const SessionState& at(SessionId id) const { return sessions_.at(id); }

  // Volunteers that take part and are not leaving.
  [[nodiscard]] std::uint32_t active() const { return active_; }

  // The name, or "?" for one that is over.
  [[nodiscard]] std::string name_of(SessionId id) const;

  // -- coming
  void opened(const SessionOpened& event);
  // Whether a volunteer may take part as far as its Hello goes; the protocol to speak. kFault when
  // it computes other bits than this machine.
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
    unit_times_.reset();
    fastest_.reset();
  }

  // When time has last passed. What depends on time alone changes with it, so that nobody need look
  // at it in between.
  [[nodiscard]] Instant last_tick() const { return last_tick_; }

  // Whether shards are lent to it only if nobody else has room.
  [[nodiscard]] bool is_quarantined(const SessionState& session) const {
    return last_tick_ < session.quarantined_until;
  }

  // The highest speed of anybody here, as of the last tick.
  [[nodiscard]] double fastest() const;

  struct Overdue {
    std::string reason;
    std::optional<Millis> waited{};  // for which others waited for it; none: nobody did
  };

  // Why the session must end by now, if it must. `outstanding` returns what is due
  // first.
  [[nodiscard]] std::optional<Overdue> overdue(
      const SessionState& session,
      const std::function<std::optional<OutstandingWork>()>& outstanding) const;
  // The volunteer missed an obligation: it gets no shards for CoreConfig::forget_slowness, and
  // longer when it missed some before, also when it connects again. A stranger gets none for ten
  // times as long as others `waited` for it, so that it costs them a tenth of their time at most.
  // A newcomer's quarantine holds for all newcomers of its invite.
  void quarantine(SessionState& session, Millis waited = Millis(0));
  // How long the session has for the obligation, beside the time that its bytes take. A volunteer
  // has CoreConfig::stall. A stranger has 20 times what others take for a unit, and for anything
  // else six times CoreConfig::stranger_stall, since the whole run waits for it.
  [[nodiscard]] Millis time_for(Obligation obligation, const SessionState& session) const;

  // Whether work of the session is done again by others.
  [[nodiscard]] bool is_audited(const SessionState& session) const {
    return run_.config.audit != AuditMode::kOff && !session.is_trusted();
  }

  // Whether the session is a stranger that has not done anything yet whose answer was known.
  [[nodiscard]] bool is_newcomer(const SessionState& session) const {
    return is_audited(session) && !session.is_proven;
  }

  // The stranger has done what others had done before it: its key is no newcomer's any more.
  void prove(SessionState& session);

  // A checkpoint may hold work of the stranger's key from now on.
  void note_trained(const KeyId& key);

  // Whether a checkpoint may hold work of the key, whoever is here.
  [[nodiscard]] bool may_have_trained(const KeyId& key) const;

  // Whether newcomers can prove themselves at present without others waiting for them.
  [[nodiscard]] bool tries_newcomers() const { return tries_newcomers_; }

  void set_tries_newcomers(bool tries) { tries_newcomers_ = tries; }

  // The places that strangers may take; the others are for trusted volunteers.
  [[nodiscard]] std::uint32_t places_for_strangers() const {
    return run_.config.sessions_max - run_.config.sessions_max / 4;
  }

  [[nodiscard]] bool is_heartbeat_due(const SessionState& session) const {
    return outbox_.now() - session.last_said >= run_.config.heartbeat;
  }

  void send_heartbeat(SessionId id, SessionState& session, RunNews news);
  void heard(SessionState& session, const Heartbeat& heartbeat) const;
  // Nobody could do what it owed: units have their full time again.
  void restart_units();

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
  // One more takes part, or fewer.
  void count_active(const SessionState& session, int change);
  void log_pause(SessionState& session, bool was_paused) const;
  // Which kernel gives other bits there than here; empty: none.
  [[nodiscard]] std::string wrong_kernel(const Hello& hello) const;
  [[nodiscard]] Millis time_for_unit(const SessionState& session) const;
  // Its name, with a number behind it where another machine that is here has that name.
  [[nodiscard]] std::string name_apart(const SessionState& session) const;
  // Why there is no place for the session; empty when there is.
  [[nodiscard]] std::string no_place_for(const SessionState& session) const;
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
  std::set<KeyId> proven_;   // strangers, at most kPeersMax
  std::set<KeyId> trained_;  // strangers whose work a checkpoint may hold, at most kPeersMax
  bool tries_newcomers_ = false;
  Quarantines<KeyId> quarantined_keys_;        // volunteers, with or without a session
  Quarantines<InviteId> quarantined_invites_;  // their newcomers
  std::uint32_t observers_ = 0;                // answered since the last tick
  Instant last_tick_{}, tick_before_{};
  std::uint32_t active_ = 0;
  std::uint32_t active_strangers_ = 0;
  // Since the last tick, once it is known: what a batch takes everybody, and the highest speed.
  mutable std::optional<Medians> unit_times_;
  mutable std::optional<double> fastest_;
};

}  // namespace gleaner
