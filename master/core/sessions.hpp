// The sessions: admission, liveness, heartbeats, departures. Used from the core only.
//
// Owns the sessions, their accounts and the list of recent departures. The leases and unanswered
// units of a session that ends are freed by the classes that own them.
//
// Invariants
// - At most `sessions_max` sessions are active, not counting sessions of this process. Strangers
//   take at most places_for_strangers() of them. Two introduced sessions never share an identity.
// - A session that is not in the map is over: its late messages are ignored.
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
#include "master/core/reports.hpp"
#include "master/core/session.hpp"

namespace gleaner {

// Keeps who gets no shards for a while after a missed obligation; each time longer. Pure state;
// used from the core only.
// Invariant: at most kPeersMax entries; a further one replaces the entry that ends first.

// `Who` is a key, or the invite of newcomers.
template <typename Who>
class Quarantines {
 public:
  // Quarantines `who` for a missed obligation; returns the end. The first quarantine lasts `first`,
  // each further one twice the last, at most 64 times `first`, never less than `at_least`. A
  // quarantine is forgotten 64 times `first` after its end.
  Instant missed(const Who& who, Millis first, Millis at_least, Instant now) {
    std::erase_if(entries_,
                  [&](const auto& known) { return known.second.until + first * kLongest <= now; });
    if (!entries_.contains(who) && entries_.size() >= kPeersMax) {
      entries_.erase(
          std::ranges::min_element(entries_, {}, [](const auto& e) { return e.second.until; }));
    }
    Entry& entry = entries_[who];
    entry.times = entry.times == 0 ? 1 : std::min(entry.times * 2, kLongest);
    entry.until = std::max(entry.until, now + std::max(first * entry.times, at_least));
    return entry.until;
  }

  // The distant past where `who` is not quarantined.
  [[nodiscard]] Instant until(const Who& who) const {
    const auto found = entries_.find(who);
    return found == entries_.end() ? Instant{} : found->second.until;
  }

 private:
  static constexpr int kLongest = 64;

  struct Entry {
    int times = 0;  // as long as the first time
    Instant until{};
  };

  std::map<Who, Entry> entries_;
};

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

  // Null for a session that is over.
  [[nodiscard]] SessionState* find(SessionId id);
  [[nodiscard]] const SessionState* find(SessionId id) const;

  // Requires a session that is not over.
  [[nodiscard]] SessionState& at(SessionId id) { return sessions_.at(id); }

  [[nodiscard]] const SessionState& at(SessionId id) const { return sessions_.at(id); }

  // Volunteers that take part and are not leaving.
  [[nodiscard]] std::uint32_t active() const { return active_; }

  // The volunteer's name, or "?" when the session is over.
  [[nodiscard]] std::string name_of(SessionId id) const;

  // -- coming
  void opened(const SessionOpened& event);
  // Checks a volunteer's Hello, and returns the protocol to speak. kFault when the volunteer
  // computes other bits than this machine.
  [[nodiscard]] Result<std::uint32_t> check(const SessionState& session, const Hello& hello) const;
  // The introduced session of this identity: its connection may have broken unnoticed.
  [[nodiscard]] std::optional<SessionId> of_identity(const KeyId& identity) const;
  // Makes a checked volunteer active and welcomes it; kBusy when there is no room.
  Result<void> activate(SessionId id, SessionState& session, Hello hello, std::uint32_t protocol,
                        RoundIndex checkpoint);
  // Returns the protocol to speak with a tool that asks for the status, or why it gets no answer.
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

  // When time has last passed. State that depends on time alone changes then, and nobody need look
  // at it in between.
  [[nodiscard]] Instant last_tick() const { return last_tick_; }

  // Whether the volunteer gets shards only when nobody else has room.
  [[nodiscard]] bool is_quarantined(const SessionState& session) const {
    return last_tick_ < session.quarantined_until;
  }

  // The highest speed of anybody here, as of the last tick.
  [[nodiscard]] double fastest() const;

  struct Overdue {
    std::string reason;
    std::optional<Millis> waited{};  // for which others waited for it; none: nobody did
  };

  // Why the session must end by now, if it must. `outstanding` returns the session's first
  // outstanding work.
  [[nodiscard]] std::optional<Overdue> overdue(
      const SessionState& session,
      const std::function<std::optional<OutstandingWork>()>& outstanding) const;
  // The volunteer missed an obligation: it is quarantined for CoreConfig::forget_slowness, and for
  // longer after earlier misses, also when it connects again. A stranger stays out for at least ten
  // times as long as others `waited` for it, so that it costs them a tenth of their time at most. A
  // newcomer's quarantine holds for all newcomers of its invite.
  void quarantine(SessionState& session, Millis waited = Millis(0));
  // How long the session has for the obligation, not counting the transfer of its bytes. A trusted
  // volunteer has CoreConfig::stall. A stranger has less, since the whole run waits for it: 20
  // times what others take for a unit, and 6 times CoreConfig::stranger_stall for anything else. A
  // shard-round may take 20 times what others take, for every volunteer.
  [[nodiscard]] Millis time_for(Obligation obligation, const SessionState& session) const;

  // Whether others repeat the work of the session.
  [[nodiscard]] bool is_audited(const SessionState& session) const {
    return run_.config.audit != AuditMode::kOff && !session.is_trusted();
  }

  // Whether the session is an audited stranger that has not proved itself.
  [[nodiscard]] bool is_newcomer(const SessionState& session) const {
    return is_audited(session) && !session.is_proven;
  }

  // The stranger's work has matched known answers or others' work: its key is no newcomer's any
  // more.
  void prove(SessionState& session);

  // Checkpoints may hold work of the stranger's key from now on.
  void note_trained(const KeyId& key);

  // Whether a checkpoint may hold work of the key.
  [[nodiscard]] bool may_have_trained(const KeyId& key) const;

  // Whether newcomers can prove themselves without anybody waiting for them.
  [[nodiscard]] bool tries_newcomers() const { return tries_newcomers_; }

  void set_tries_newcomers(bool tries) { tries_newcomers_ = tries; }

  // Places that strangers may take. The others stay free for trusted volunteers.
  [[nodiscard]] std::uint32_t places_for_strangers() const {
    return run_.config.sessions_max - run_.config.sessions_max / 4;
  }

  [[nodiscard]] bool is_heartbeat_due(const SessionState& session) const {
    return outbox_.now() - session.last_said >= run_.config.heartbeat;
  }

  void send_heartbeat(SessionId id, SessionState& session, RunNews news);
  void heard(SessionState& session, const Heartbeat& heartbeat) const;
  // The store had no room, and nobody could work: all units have their full time again.
  void restart_units();

  // -- going
  // The volunteer asked to leave, and hands its shards over.
  void leaves(SessionId id, SessionState& session);

  // The sessions that asked to go.
  [[nodiscard]] const std::set<SessionId>& leaving() const { return leaving_; }

  // Ends the session. Nullopt when it was over already.
  std::optional<SessionState> take(SessionId id);
  // An introduced session is over, and its `shards` are free.
  void departed(const SessionState& session, const std::string& reason, std::uint32_t shards);

  // The last few departures, oldest first.
  [[nodiscard]] const std::deque<Departure>& gone() const { return gone_; }

  // -- accounts
  AccountRecord& account(const SessionState& session) { return accounts_.of(session); }

  std::vector<AccountRecord> hand_in_accounts();

  [[nodiscard]] std::vector<AccountRecord> accounts() const { return accounts_.all(); }

 private:
  // `change` is 1 or -1.
  void count_active(const SessionState& session, int change);
  void log_pause(SessionState& session, bool was_paused) const;
  // Names a kernel that gives other bits on the volunteer than here; empty if there is none.
  [[nodiscard]] std::string wrong_kernel(const Hello& hello) const;
  [[nodiscard]] Millis time_for_unit(const SessionState& session) const;
  // The volunteer's name, with a number appended if another volunteer here has the same name.
  [[nodiscard]] std::string name_apart(const SessionState& session) const;
  [[nodiscard]] std::string no_place_for(const SessionState& session) const;
  // The protocol to speak with a peer that speaks these versions.
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
  // Computed once between two ticks: the times of a batch, and the highest speed.
  mutable std::optional<Medians> unit_times_;
  mutable std::optional<double> fastest_;
};

}  // namespace gleaner
