// The master's mind: admits volunteers, lends them shards, keeps batches in flight at the fixed
// lag, closes rounds, evaluates, recovers. Pure: (event, now) -> effects; no clock, file, lock or
// thread.
//
// Invariants
// - A batch is applied to the input layer once, when every output shard has answered for it, in
//   batch order (see pipeline.hpp).
// - A commit is acknowledged only after it is durable, a round is folded only when whole.
// - Nothing a volunteer sends reaches a check: what does not fit ends its session with a sentence.
// Used from one strand.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "master/core/commit_tracker.hpp"
#include "master/core/core_config.hpp"
#include "master/core/evaluation_run.hpp"
#include "master/core/events.hpp"
#include "master/core/input_stream.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/placement/balancer.hpp"
#include "master/core/placement/lease_table.hpp"
#include "master/core/session.hpp"

namespace gleaner {

class MasterCore {
 public:
  // `model` is valid; `config.label_counts` has one entry a label.
  MasterCore(const ModelConfig& model, CoreConfig config, ResumePoint resume);

  // Effects are to be performed in order. After Done nothing more comes out.
  Effects handle(Event event, Instant now);

  // Accounts for a message that left, with its size on the wire.
  void record_sent(SessionId id, const Message& message, std::size_t bytes);

  [[nodiscard]] CoreSnapshot snapshot() const;
  // The same in full, for tools. What only the shell knows is not measured.
  [[nodiscard]] RunStatus status() const;
  [[nodiscard]] std::vector<AccountRecord> accounts() const;

  [[nodiscard]] RoundIndex checkpoint() const { return checkpoint_; }

  [[nodiscard]] const LeaseTable& leases() const { return leases_; }

  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }

  // Where volunteers hold the input layer.
  [[nodiscard]] const std::optional<InputStream>& input_stream() const { return input_; }

 private:
  // -- events (master_core.cpp)
  void on(MessageReceived& event);
  void on(const ForwardDone& event);
  void on(BackwardDone& event);
  void on(PointsRead& event);
  void on(InputCommitted& event);
  void on(const EvalForwardDone& event);
  void on(const EvalChunkScored& event);
  void on(const EvalFinished& event);
  void on(const Staged& event);
  void on(Folded& event);
  void on(ChunkRead& event);
  void on(const HistoryRecorded& event);
  void on(const StoreFull& event);
  void on(const TaskFailed& event);
  // A stop does not wait for room on the disk.
  void stop_if_full();
  // The store does its tasks (again).
  void store_answered();
  void on(const StopRequested& event);
  void say(SessionId id, Message message);
  void remark(Severity severity, std::string kind, std::string text);
  void finish(Done done);

  // -- sessions (master_sessions.cpp)
  void on(const SessionOpened& event);
  void on(const SessionClosed& event);
  void on(const Tick& event);
  void on_message(SessionId id, SessionState& session, Hello& message);
  void on_message(SessionId id, SessionState& session, Observe& message);
  // Refuses who speaks no protocol of ours or lacks the token; else the protocol to speak.
  std::optional<std::uint32_t> admit(SessionId id, const char* who, const std::string& build,
                                     std::uint32_t protocol_min, std::uint32_t protocol_max,
                                     const std::string& token);
  void on_message(SessionId id, SessionState& session, Heartbeat& message);
  void on_message(SessionId id, SessionState& session, Leaving& message);
  void on_message(SessionId id, SessionState& session, Goodbye& message);
  void refuse(SessionId id, ErrorCode code, std::string sentence, bool retry);
  // Frees what the session holds; the shell may still have to close the connection.
  void drop_session(SessionId id, const std::string& reason);
  // An evaluation unit that will not be answered is to be done by someone else.
  void unassign(const UnitInFlight& unit);
  void keep_in_touch(SessionId id, SessionState& session);
  // What made a volunteer without shards slow may be over: its measured speed counts less and less.
  void forget_slowness(SessionId id, SessionState& session);
  // Whether something is awaited of it: a result, a commit, a shard to be loaded or handed over.
  [[nodiscard]] bool owes(SessionId id, const SessionState& session) const;
  // Something more is awaited of it from now on.
  void begin_debt(SessionState& session);
  [[nodiscard]] std::uint32_t active_sessions() const;
  AccountRecord& account(const SessionState& session);
  // The accounts to be stored with a round; those of volunteers that have gone are forgotten here.
  std::vector<AccountRecord> hand_in_accounts();

  // -- messages about shards and units (master_messages.cpp, master_rejoin.cpp)
  void on_message(SessionId id, SessionState& session, ShardOffer& message);
  void on_message(SessionId id, SessionState& session, ChunkRequest& message);
  void on_message(SessionId id, SessionState& session, ShardReady& message);
  void on_message(SessionId id, SessionState& session, HandOver& message);
  void on_message(SessionId id, SessionState& session, UnitResult& message);
  void on_message(SessionId id, SessionState& session, ShardCommit& message);
  void on_message(SessionId id, SessionState& session, EvalResult& message);
  void on_message(SessionId id, SessionState& session, InputResult& message);
  void on_message(SessionId id, SessionState& session, PointsRequest& message);
  void on_message(SessionId id, SessionState& session, const Message& other);
  Result<void> check_unit_result(const UnitInFlight& unit, const UnitResult& result) const;
  void measure(SessionState& session, const UnitInFlight& unit, const UnitResult& result);

  // -- scheduling (master_schedule.cpp)
  void schedule();

  // -- input shards that volunteers hold (master_input.cpp)
  // A task of the pipeline or the evaluation: the worker's, or steps for the holders.
  void perform(WorkerTask task);
  // The shard is lent to the session and stands before `next_batch`.
  void begin_input(ShardId shard, SessionState& session, BatchIndex next_batch);
  void issue_input_units(SessionId id, SessionState& session);

  // -- placement (master_placement.cpp)
  void lend_free_shards();
  // Of a shard as of a checkpoint: none where every row follows from the configuration.
  [[nodiscard]] std::uint32_t base_chunks(ShardId shard, RoundIndex base_round) const;
  // Whether free shards are still kept for volunteers that may come back with them.
  bool waits_for_rejoin();
  void rebalance();
  void weigh_balance();
  void notice_held_back();
  void explain_shares(std::span<const Holder> holders);
  // What a session is expected to do, examples x shards a second or any common unit.
  [[nodiscard]] double expected_speed(const SessionState& session) const;
  [[nodiscard]] bool is_between_rounds() const;
  [[nodiscard]] bool is_move_worth_while(const std::vector<Holder>& candidates) const;
  // The two kinds of shards, which are shared out each by itself.
  enum class Layer : std::uint8_t { kOutput, kInput };

  [[nodiscard]] Layer layer_of(ShardId shard) const {
    return map_.is_output(shard) ? Layer::kOutput : Layer::kInput;
  }

  // Those that volunteers hold.
  [[nodiscard]] std::uint32_t shards_in(Layer layer) const {
    return layer == Layer::kOutput ? map_.output_shards() : leases_.size() - map_.output_shards();
  }

  [[nodiscard]] std::vector<ShardId> held_by(SessionId holder, Layer layer) const;
  [[nodiscard]] std::vector<Holder> holders(Layer layer) const;
  // Whether those who may hold shards of the layer can hold them all.
  [[nodiscard]] bool have_room(Layer layer) const;
  [[nodiscard]] std::uint32_t capacity(const SessionState& session, Layer layer,
                                       std::size_t held_of_other) const;
  void move_shards(Layer layer, const std::vector<Holder>& candidates, const char* why);
  [[nodiscard]] std::uint32_t rows_per_chunk(ShardId shard) const;
  void let_leavers_go();
  [[nodiscard]] RoundIndex rounds_open() const;
  void close_rounds();
  [[nodiscard]] std::optional<Divergence> divergence_of(const RoundRecord& record,
                                                        const CodeLengths& lengths) const;
  [[nodiscard]] CodeLengths code_lengths(RoundIndex round) const;

  [[nodiscard]] bool is_evaluation_due(RoundIndex checkpoint) const;
  void start_evaluation();
  void finish_if_complete();

  // -- units (master_issue.cpp)
  void issue_units(SessionId id, SessionState& session);
  void issue_evaluation(SessionId id, SessionState& session);
  bool issue_unit(SessionId id, SessionState& session);
  [[nodiscard]] UnitInFlight next_unit(SessionId id, const SessionState& session) const;
  [[nodiscard]] std::uint32_t unit_batches(const SessionState& session, BatchIndex first,
                                           std::size_t shards) const;
  // Whether a unit of live batches should wait for more to join it: units grow as far as the lag
  // and the volunteer's time allow, while what it has in hand lasts.
  [[nodiscard]] bool is_early(SessionId id, const SessionState& session,
                              const UnitInFlight& unit) const;
  void send_unit(SessionId id, SessionState& session, UnitInFlight unit, Message message);

  // -- what people are shown (master_view.cpp)
  [[nodiscard]] RoundRecord round_record(RoundIndex round) const;

  // What the run waits for now.
  struct Wait {
    WaitOwner owner = WaitOwner::kNobody;
    std::string what;
    Instant since{};
    bool is_step = false;  // of work, which goes on all the time; anything else holds the run up
  };

  [[nodiscard]] Wait wait() const;
  [[nodiscard]] bool is_held_up(const Wait& wait) const;
  [[nodiscard]] std::string waiting_for() const;
  // Who owes the step that has been due for longest.
  [[nodiscard]] Wait next_step() const;
  [[nodiscard]] ShardEntry shard_status(const ShardLease& lease,
                                        const std::map<SessionId, std::uint32_t>& places) const;
  [[nodiscard]] VolunteerEntry volunteer_status(SessionId id, const SessionState& session) const;
  [[nodiscard]] std::uint64_t age_us(Instant since) const;
  [[nodiscard]] std::string names_of_holders(const std::vector<ShardId>& shards) const;
  // Remembers when the run last came on.
  void note_progress();

  const ModelConfig model_;
  const CoreConfig config_;
  const RunPlan plan_;
  const ShardMap map_;
  Instant now_{};
  Effects effects_;

  std::map<SessionId, SessionState> sessions_;
  LeaseTable leases_;
  Pipeline pipeline_;
  std::optional<InputStream> input_;  // where volunteers hold the input shards
  CommitTracker commits_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, AccountRecord> accounts_;
  std::uint64_t last_unit_ = 0;
  std::deque<Departure> gone_;    // the last few
  std::uint32_t observers_ = 0;   // answered since the last tick
  const LeaseEpoch first_epoch_;  // which start of the run this is

  RoundIndex checkpoint_;
  std::vector<ShardDigest> digests_;     // of the shards at checkpoint_; may be empty
  bool expects_rejoin_;                  // all holders were lost; the grace is about to begin
  std::optional<Instant> rejoin_until_;  // while free shards are kept for those who have them
  bool is_started_ = false;              // min_volunteers have been here
  bool is_folding_ = false;
  bool has_newcomer_ = false;            // who is to get shards at once
  std::uint32_t unbalanced_rounds_ = 0;  // in a row
  std::optional<Instant> last_loss_;     // of a volunteer with shards that it did not hand over
  Micros loading_time_{0};               // from a grant to its ShardReady, the last one
  bool is_done_ = false;
  bool is_evaluation_recorded_ = true;
  // Since the disk has had no room for the store's next task, and in words what is needed.
  std::optional<Instant> store_full_since_;
  std::string store_full_reason_;
  std::optional<Instant> stop_deadline_;
  std::optional<RoundIndex> stop_at_;  // the checkpoint a stop waits for
  std::optional<EvaluationRun> evaluation_;
  RoundIndex evaluated_checkpoint_ = 0;  // the last checkpoint whose evaluation is done or not due
  Evaluation last_evaluation_;
  LearningSoFar learning_;

  // Measurements; no decision about numbers rests on them.
  Instant born_{};       // of the first event
  Instant last_step_{};  // when the run last came on, and where it was then
  std::uint64_t steps_ = 0;
  Instant round_started_{};
  RoundRecord last_record_;
  bool has_warned_of_codes_ = false;
  std::uint64_t examples_ = 0;
  std::uint64_t unit_bytes_down_ = 0, unit_bytes_up_ = 0;
  // Of the open round: bytes of units and results, and examples x volunteers they carried.
  std::uint64_t round_bytes_down_ = 0, round_bytes_up_ = 0, round_unit_examples_ = 0;
};

}  // namespace gleaner
