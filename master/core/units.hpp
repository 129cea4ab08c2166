// Decides what each volunteer works on next, and what becomes of its answers. Used from the core
// only.
//
// Runs without a hidden layer have the Bag in its place, except for the examples that it reads.
// Invariants
// - Whatever claims to be a result and is none ends its session.
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

  // -- who may have something to begin since the last issue()
  void may_begin(SessionId id) { due_.insert(id); }

  void all_may_begin() { are_all_due_ = true; }

  // Some, in turn: time has passed.
  void some_may_begin();

  // Sends them what they can begin.
  void issue(RoundIndex checkpoint);

  // A task of the pipeline or the evaluation: the worker's, or steps for the holders of the input
  // layer.
  void perform(WorkerTask task);

  // -- answers (unit_results.cpp, input_units.cpp). An error ends the session.
  Result<void> receive(SessionId id, SessionState& session, UnitResult& result);
  Result<void> receive(SessionId id, SessionState& session, EvalResult& result,
                       RoundIndex checkpoint);
  Result<void> receive(SessionState& session, const InputResult& result);
  Result<void> receive(SessionId id, SessionState& session, PointsRequest& request);
  Result<void> on(PointsRead& event);
  void on(RelaySummed& event);

  // Counts the answers to evaluation units that audits have confirmed.
  void count_confirmed();

  // The session is over: its evaluation units are to be done by others.
  void abandon(const SessionState& session);

 private:
  void issue_own(SessionId id, SessionState& session, RoundIndex checkpoint);
  void issue_training(SessionId id, SessionState& session);
  bool issue_unit(SessionId id, SessionState& session);
  // Work of others to be done again.
  void issue_audits(SessionId id, SessionState& session);
  void send_training(SessionId id, SessionState& session, UnitInFlight unit);
  void send_evaluation(SessionId id, SessionState& session, UnitInFlight unit);
  // Work of the past for newcomers.
  void issue_trials();
  // Adds what a holder got, which an audit has yet to confirm if it is audited.
  Result<void> add(SessionId id, const SessionState& session, const UnitInFlight& unit,
                   UnitResult& result);
  void count_carried(const UnitInFlight& unit);
  void issue_evaluation(SessionId id, SessionState& session, RoundIndex checkpoint);
  void issue_input(SessionId id, SessionState& session);
  [[nodiscard]] UnitInFlight next_unit(SessionId id, const SessionState& session) const;
  [[nodiscard]] std::vector<LeaseRef> leases_of(const std::vector<ShardId>& shards) const;
  // It is out no more.
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
