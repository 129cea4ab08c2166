// The master's state machine. It admits volunteers, lends them shards, keeps batches in flight at
// the fixed lag, closes rounds, evaluates and recovers. Pure: (event, now) -> effects, without
// clock, file, lock or thread.
//
// MasterCore coordinates classes that own their state. It passes each event to the class that
// handles it, ends sessions and the run, and then asks each class for its next work (schedule()).
//
// Invariants
// - Nothing changes the core outside handle().
// - A volunteer's message never reaches a GLEANER_CHECK. A message that does not fit ends its
//   session with a sentence.
// - After Done no effect comes out.
//
// Used from one strand.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "master/core/audits/audits.hpp"
#include "master/core/audits/trials.hpp"
#include "master/core/bag/bag.hpp"
#include "master/core/bag/shard_rounds.hpp"
#include "master/core/core_config.hpp"
#include "master/core/evaluations.hpp"
#include "master/core/events.hpp"
#include "master/core/input_stream.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/placement.hpp"
#include "master/core/rounds.hpp"
#include "master/core/run_view.hpp"
#include "master/core/sessions.hpp"
#include "master/core/unit_ledger.hpp"
#include "master/core/units.hpp"

namespace gleaner {

class MasterCore {
 public:
  // Requires a valid `model`, and one entry per label in `config.label_counts`.
  MasterCore(const ModelConfig& model, CoreConfig config, ResumePoint resume);

  // Returns the effects in the order in which they are to be performed; none after Done.
  Effects handle(Event event, Instant now);

  [[nodiscard]] RunProgress progress() const { return view_.progress(); }

  // The whole status, for tools. Fields that only the shell can fill in are "not measured".
  [[nodiscard]] RunStatus status() const { return view_.status(); }

  [[nodiscard]] std::vector<AccountRecord> accounts() const { return sessions_.accounts(); }

  [[nodiscard]] RoundIndex checkpoint() const { return rounds_.checkpoint(); }

  [[nodiscard]] const LeaseTable& leases() const { return placement_.leases(); }

  // Leases under which auditors and spares repeat work.
  [[nodiscard]] const LeaseTable& shadows() const { return placement_.shadows(); }

  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }

  // Set in a run without a hidden layer.
  [[nodiscard]] const std::optional<ShardRounds>& shard_rounds() const { return shard_rounds_; }

  // Set when volunteers hold the input layer.
  [[nodiscard]] const std::optional<InputStream>& input_stream() const { return input_; }

 private:
  // -- events
  void on(const SessionOpened& event) { sessions_.opened(event); }

  void on(MessageReceived& event);

  void on(const SessionClosed& event) { drop_session(event.session, event.reason); }

  void on(const ForwardDone& event);
  void on(BackwardDone& event);
  void on(PointsRead& event);

  void on(InputCommitted& event) { rounds_.on(event); }

  void on(const EvalForwardDone& event) { evaluations_.current()->forward_done(event); }

  void on(const EvalChunkScored&) {}

  void on(const EvalFinished& event) { rounds_.on(event); }

  void on(const Settled&) { rounds_.store_answered(); }

  void on(const Staged& event);
  void on(Folded& event);
  void on(const GradientsAdded& event);

  void on(RelaySummed& event) { units_.on(event); }

  void on(const RelayGone& event);
  void check_lost_gradients(bool is_just_lost);
  void on(ChunkRead& event);
  void on(const HistoryRecorded& event);

  void on(const StoreFull& event) { finish_if(rounds_.on(event)); }

  void on(const TaskFailed& event) { finish({Outcome::kFailed, event.error}); }

  void on(const StopRequested& event) { finish_if(rounds_.on(event)); }

  void on(const Banned& event);
  void on(const Tick& event);
  // Counts a sent message. Schedules nothing: no decision depends on it.
  void on(const MessageSent& event);

  // -- messages
  // Passes a message to the class that handles it. An error ends the session with its sentence. The
  // table of messages tells which types come here.
  Result<void> receive(SessionId id, SessionState& session, Hello& hello);
  Result<void> receive(SessionId id, SessionState& session, const Observe& observe);
  Result<void> receive(SessionId id, SessionState& session, ShardOffer& offer);
  Result<void> receive(SessionId id, SessionState& session, ChunkRequest& request);
  Result<void> receive(SessionId id, SessionState& session, ShardReady& ready);
  Result<void> receive(SessionId id, SessionState& session, HandOver& part);
  Result<void> receive(SessionId id, SessionState& session, UnitResult& result);
  Result<void> receive(SessionId id, SessionState& session, EvalResult& result);

  Result<void> receive(SessionId, SessionState& session, const InputResult& result) {
    return units_.receive(session, result);
  }

  Result<void> receive(SessionId id, SessionState& session, PointsRequest& request) {
    return units_.receive(id, session, request);
  }

  Result<void> receive(SessionId id, SessionState& session, ShardCommit& part) {
    return rounds_.receive(id, session, part);
  }

  void receive(SessionId id, SessionState& session, const Heartbeat& heartbeat);
  void receive(SessionId id, SessionState& session, const Leaving& leaving);
  void receive(SessionId id, SessionState& session, const Goodbye& goodbye);

  // The volunteer may be able to audit more or less from now on.
  void note_change_of(SessionId id);

  // -- next work
  // Marks everything as changed: see concerns_all() in events.hpp.
  void look_at_all();
  void schedule();
  void issue();
  // Appoints auditors, counts what they have confirmed, and calls the referee when nobody else can
  // audit.
  void audit();
  void let_leavers_go();
  // Tells the volunteer what it did since the core began or since its last final record. Unsigned.
  Goodbye goodbye_to(const SessionState& session, ErrorCode code, const char* why);
  // Ends the sessions of convicted volunteers. Ends the core when the model may hold false work.
  void judge();
  // Whether a checkpoint may hold work of the key that nobody audited.
  [[nodiscard]] bool may_be_unaudited(const KeyId& key) const;

  // -- ends
  // Ends the session with a refusal. The refusal invites another try only after kBusy.
  void refuse(SessionId id, const Error& error);
  // Frees the session's shards and units. The shell may still have to close the connection.
  void drop_session(SessionId id, const std::string& reason);
  void finish(Done done);
  void finish_if(std::optional<Done> done);

  // Members refer to members above them.
  const RunSetup run_;
  Outbox outbox_;
  RunView::Life life_;
  Sessions sessions_;
  Pipeline pipeline_;
  std::optional<InputStream> input_;  // where volunteers hold the input shards
  Placement placement_;
  Audits audits_;
  Trials trials_;
  Evaluations evaluations_;
  RoundMeter meter_;
  std::optional<ShardRounds> shard_rounds_;  // without a hidden layer
  Rounds rounds_;
  UnitLedger ledger_;
  Units units_;
  std::optional<Bag> bag_;  // without a hidden layer
  RunView view_;
  // Gradients that were lost with their relay. The next holders of these shards compute them again.
  std::set<std::pair<BatchIndex, ShardId>> lost_gradients_;
};

}  // namespace gleaner
