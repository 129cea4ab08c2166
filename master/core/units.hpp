// Decides which unit each volunteer gets next, and handles the answers. Used from the core only.
//
// A run without a hidden layer has the Bag instead, except for reading examples.
//
// Invariants
// - An answer that does not fit its unit ends its session.
// - Only volunteers that hold a ready shard are asked for work on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "master/core/audits/audits.hpp"
#include "master/core/audits/trials.hpp"
#include "master/core/core_config.hpp"
#include "master/core/evaluations.hpp"
#include "master/core/input_stream.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/placement.hpp"
#include "master/core/rounds.hpp"
#include "master/core/session.hpp"
#include "master/core/sessions.hpp"
#include "master/core/unit_ledger.hpp"
#include "master/core/unit_sizing.hpp"

namespace gleaner {

class Units {
 public:
  // All of it outlives the units. `input` is set where volunteers hold the input layer.
  Units(const RunSetup& run, Outbox& outbox, Sessions& sessions, UnitLedger& ledger,
        Placement& placement, Audits& audits, Trials& trials, Pipeline& pipeline,
        std::optional<InputStream>& input, Evaluations& evaluations, RoundMeter& meter)
      : run_(run),
        outbox_(outbox),
        sessions_(sessions),
        ledger_(ledger),
        placement_(placement),
        leases_(placement.leases()),
        audits_(audits),
        trials_(trials),
        pipeline_(pipeline),
        input_(input),
        evaluations_(evaluations),
        meter_(meter),
        sizing_(run, pipeline) {}

  // -- sessions that issue() looks at
  void may_begin(SessionId id) { due_.insert(id); }

  void all_may_begin() { are_all_due_ = true; }

  // Time has passed: marks some sessions, in turn.
  void some_may_begin();

  // Sends the marked sessions what they can begin.
  void issue(RoundIndex checkpoint);

  // Hands a task to the worker, or to the holders of the input layer as steps.
  void perform(WorkerTask task);

  // -- answers (input_stream.cpp: to units of input shards). An error ends the session.
  Result<void> receive(SessionId id, SessionState& session, UnitResult& result);
  Result<void> receive(SessionId id, SessionState& session, EvalResult& result,
                       RoundIndex checkpoint);
  Result<void> receive(SessionState& session, const InputResult& result);
  Result<void> receive(SessionId id, SessionState& session, PointsRequest& request);
  Result<void> on(PointsRead& event);
  void on(RelaySummed& event);

  // Scores the answers to evaluation units that audits have confirmed.
  void count_confirmed();

  // The session is over: others are to do its evaluation units.
  void abandon(const SessionState& session);

 private:
  void issue_own(SessionId id, SessionState& session, RoundIndex checkpoint);
  void issue_training(SessionId id, SessionState& session);
  bool issue_unit(SessionId id, SessionState& session);
  // Sends the units that the session repeats as an auditor.
  void issue_audits(SessionId id, SessionState& session);
  void send_training(SessionId id, SessionState& session, UnitInFlight unit);
  void send_evaluation(SessionId id, SessionState& session, UnitInFlight unit);
  // Sends newcomers the exercises of their trials.
  void issue_trials();
  // Adds a holder's result. Audits have yet to confirm the result of an audited holder.
  Result<void> add(SessionId id, const SessionState& session, const UnitInFlight& unit,
                   UnitResult& result);
  void count_carried(const UnitInFlight& unit);
  void issue_evaluation(SessionId id, SessionState& session, RoundIndex checkpoint);
  void issue_input(SessionId id, SessionState& session);
  [[nodiscard]] UnitInFlight next_unit(SessionId id, const SessionState& session) const;
  [[nodiscard]] std::vector<LeaseRef> leases_of(const std::vector<ShardId>& shards) const;
  void note_answered(const UnitInFlight& unit);
  [[nodiscard]] static Result<void> check(const UnitInFlight& unit, const UnitResult& result);
  void unassign(const UnitInFlight& unit);
  void score(const UnitInFlight& unit, std::vector<ScoredNeuron> best);

  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  UnitLedger& ledger_;
  Placement& placement_;
  LeaseTable& leases_;
  Audits& audits_;
  Trials& trials_;
  Pipeline& pipeline_;
  std::optional<InputStream>& input_;
  Evaluations& evaluations_;
  RoundMeter& meter_;
  UnitSizing sizing_;
  std::set<SessionId> due_;
  SessionId last_in_turn_{};
  bool are_all_due_ = false;
};

}  // namespace gleaner
