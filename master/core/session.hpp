// One connection of a volunteer, as the core sees it. Plain state.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "master/core/input_stream.hpp"
#include "master/core/reports.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// The error of a message that breaks the protocol. Its session ends with the sentence.
template <typename... Args>
Error protocol_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::kProtocol, fmt::format(format, std::forward<Args>(args)...)};
}

// Obligations of a volunteer towards the master. An obligation has one deadline, on the master's
// clock, from when it began: see Sessions::time_for and Placement::begin_outstanding. No message of
// the volunteer moves the deadline.
enum class Obligation : std::uint8_t {
  kHello,      // to introduce itself
  kHeartbeat,  // to be heard
  kOffer,      // to offer the shards that it kept
  kLoad,       // to load a shard that it was lent, as a holder, as an auditor or on trial
  kUnit,       // to answer a unit, of its own work, of an audit or of a trial
  kCommit,     // to commit a shard at the end of a round
  kHandOver,   // to hand a shard over
};

// The obligation as words that follow "did not": "load a shard".
inline const char* what_of(Obligation obligation) {
  switch (obligation) {
    case Obligation::kHello:
      return "introduce itself";
    case Obligation::kHeartbeat:
      return "say a word";
    case Obligation::kOffer:
      return "offer the shards that it kept";
    case Obligation::kLoad:
      return "load a shard";
    case Obligation::kUnit:
      return "answer a unit";
    case Obligation::kCommit:
      return "commit a shard";
    case Obligation::kHandOver:
      return "hand a shard over";
  }
  return "";
}

// An obligation that has begun.
struct OutstandingWork {
  Obligation what = Obligation::kUnit;
  Instant since{};
  Instant due{};
};

enum class SessionPhase : std::uint8_t {
  kIntroducing,  // its Hello is awaited
  kActive,
  kLeaving,  // it asked to go; its shards are being handed over
};

// Identity of the referee: a volunteer in the master's process that repeats disputed work and holds
// no shards.
inline constexpr KeyId kRefereeIdentity{0, ~std::uint64_t{0}};

// A unit that was sent and is not answered.
struct UnitInFlight {
  enum class Kind : std::uint8_t { kTrain, kEvaluate, kInput };
  Kind kind = Kind::kTrain;
  std::vector<LeaseRef> leases;
  BatchIndex first = 0;  // the shards stand before this batch when the unit begins
  std::uint32_t batches = 0;
  bool wants_gradient = true;
  bool may_be_summed = false;  // by the relay through which the session came
  std::uint64_t eval_begin = 0;
  std::uint64_t examples = 0;  // training and evaluation: in all its batches
  SharedBytes hidden;          // evaluation
  InputStream::Unit input;
  Instant sent{};

  // Set when the unit repeats another volunteer's work: a case of Audits, and a piece of the case.
  struct Audit {
    std::uint64_t case_id = 0;
    std::uint64_t piece = 0;
    std::uint64_t stint = 0;  // of the case's auditor
  };

  std::optional<Audit> audit;
  bool is_trial = false;  // of Trials
};

struct SessionState {
  SessionPhase phase = SessionPhase::kIntroducing;
  std::string peer;
  Standing standing;
  std::optional<RelayId> relay;  // through which it came
  Hello hello;
  Instant opened{};
  Instant last_heard{};
  Instant last_said{};
  Instant joined{};    // since it was welcomed
  Instant turn{};      // when the oldest unit that is out became the oldest
  Instant last_due{};  // latest deadline of its transfers; see Placement::begin_outstanding
  std::string paused;  // why it computes nothing at present; empty while it works
  Instant paused_since{};
  std::optional<Instant> pause_told;  // when a pause was last logged
  bool is_pause_told = false;         // whether the present pause was logged
  Instant paused_at{};                // the last time it was heard to be paused
  std::map<UnitId, UnitInFlight> units;
  std::uint32_t batches_in_flight = 0;
  std::uint32_t input_steps_in_flight = 0;
  bool was_lent_input = false;       // an input shard; it may ask for points
  std::size_t points_in_flight = 0;  // being read for it
  std::set<std::pair<LeaseEpoch, std::uint32_t>> chunks_in_flight;  // being read for it
  std::deque<ChunkRequest> chunks_waiting;                          // until others have been read
  double speed = 0;       // examples x shards a second, smoothed; 0 before the first unit
  Instant last_result{};  // of a training unit
  Instant last_answer{};  // of a unit of training or of input shards
  // Smoothed time of a unit per batch. `compute_us` is its arithmetic. `transit_us` is all other
  // time between the moment when the volunteer could begin the unit and the arrival of the result.
  double compute_us = 0;
  double transit_us = 0;
  std::uint32_t late_rounds = 0;  // rounds in a row in which its link kept all others waiting
  Instant quarantined_until{};    // until then it gets no shards if others have room
  // Whether a stranger has done work that proved right: see Sessions::prove.
  bool is_proven = false;
  bool is_on_trial = false;         // it does such work now, and gets no other
  std::string no_shards;            // why it gets no shards; empty when it gets some
  std::uint64_t peer_clock_us = 0;  // its last heartbeat's clock, to be echoed
  std::int64_t round_trip_us = -1;
  bool awaits_offer = false;  // its Hello announced kept shards; its ShardOffer comes next

  // Whether somebody vouches for the volunteer, so that its work need not be repeated.
  [[nodiscard]] bool is_trusted() const { return standing.is_local || standing.is_trusted; }

  [[nodiscard]] bool is_referee() const {
    return standing.is_local && standing.identity == kRefereeIdentity;
  }

  [[nodiscard]] std::string name() const { return hello.name.empty() ? "unnamed" : hello.name; }

  [[nodiscard]] Volunteer who(SessionId id) const {
    return {id, standing.identity, standing.invite, name()};
  }

  // Whether unit_time_us(), the time of a batch, is known.
  [[nodiscard]] bool has_unit_time() const { return phase == SessionPhase::kActive && speed > 0; }

  [[nodiscard]] double unit_time_us() const { return compute_us + transit_us; }

  // The volunteer's threads as its Hello states them, clamped.
  [[nodiscard]] std::uint32_t threads() const { return std::clamp(hello.cores, 1U, 1024U); }

  [[nodiscard]] bool is_paused() const { return !paused.empty(); }

  // "paused by its owner". Puts "paused" before words that lack it.
  [[nodiscard]] std::string pause_words() const {
    return (paused.starts_with("paused") ? "" : "paused: ") + paused;
  }

  // A unit is sent. A unit that is already out keeps its clock: otherwise new units could postpone
  // its deadline for ever.
  void begin_unit(Instant now) {
    if (units.empty()) turn = now;
  }

  // A unit is answered. Volunteers answer in order. The clock of the next unit therefore starts
  // when the oldest is answered, and an early answer to a later unit does not restart the clock.
  void end_unit(std::map<UnitId, UnitInFlight>::iterator unit, Instant now) {
    if (unit == units.begin()) turn = now;
    units.erase(unit);
  }

  // Whether a unit is out that includes the shard and begins before batch `end`.
  [[nodiscard]] bool has_unit_out(ShardId shard, BatchIndex end) const {
    return std::any_of(units.begin(), units.end(), [&](const auto& entry) {
      const UnitInFlight& unit = entry.second;
      return unit.first < end && std::any_of(unit.leases.begin(), unit.leases.end(),
                                             [&](const LeaseRef& l) { return l.shard == shard; });
    });
  }

  // Whether an earlier training unit under one of these leases is out.
  [[nodiscard]] bool has_earlier_out(const UnitInFlight& unit) const {
    return std::ranges::any_of(units, [&](const auto& entry) {
      const UnitInFlight& other = entry.second;
      return other.kind == UnitInFlight::Kind::kTrain && other.first < unit.first &&
             std::ranges::find_first_of(other.leases, unit.leases) != other.leases.end();
    });
  }
};

// A volunteer that has gone.
struct Departure {
  std::string name;
  std::string reason;
  Instant at{};
  std::uint32_t shards = 0;  // that it held
};

}  // namespace gleaner
