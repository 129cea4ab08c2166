// The volunteer's side of the protocol: dials, introduces itself, fetches shards, passes work to
// the executor one piece at a time, sends heartbeats, leaves politely. Without a hidden layer the
// executor only accepts units, and lanes perform them. Pure: (event, now) -> effects.
//
// Invariants
// - Work runs in the order in which the master sent it. Replies leave in that order within each
//   lane of the link. Without a hidden layer this holds per shard.
// - The volunteer sends no more parts of commits than the master has given credit for.
// - A volunteer that knows the end of its time asks to leave while a round and the hand-over still
//   fit. It is lent nothing after that.
// - While the volunteer is paused and keeps its shards, may_compute() is false.
// - Nothing of an earlier connection reaches a later one: each piece of work carries the
//   connection's generation. Two things survive, for the same run only: ready shards, which are
//   stepped back to the master's checkpoint and offered, and downloaded chunks of other shards.
//
// Used from one strand.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/limits.hpp"
#include "common/rates.hpp"
#include "common/time.hpp"
#include "volunteer/core/events.hpp"

namespace gleaner::volunteer {

struct VolunteerCoreConfig {
  Hello hello;                        // what it says of itself; protocol and build included
  std::string master;                 // HOST:PORT, for people
  std::optional<KeyId> master_key{};  // unset: it has none
  KeyId own_key{};
  bool once = false;  // exit when a run ends
  Millis retry_first{500};
  Millis retry_longest{30'000};
  Millis retry_keeping{1'000};  // longest wait while it keeps shards: it must not come too late
  // The volunteer gives its shards' memory back after this time without a master.
  Millis keep_alone{600'000};
  std::optional<Millis>
      give_up;  // exit when no master has been reached for this time; unset: never
  Millis welcome_deadline{10'000};
  Millis leave_grace{30'000};          // how long a hand-over may take before it goes anyway
  std::optional<Instant> until;        // its time here ends then, and it has gone; unset: never
  std::uint32_t chunks_in_flight = 8;  // over all shards that are loading
  // Nothing is read from the link while messages of this size wait for the executor.
  std::size_t work_bytes_max = std::size_t{256} << 20;
  std::uint32_t commit_parts_in_flight = kCommitPartsInFlight;
  std::uint64_t seed = 1;  // of the back-off's jitter
};

class VolunteerCore {
 public:
  explicit VolunteerCore(VolunteerCoreConfig config);

  // Returns the effects in the order in which they are to be performed; none after Exit.
  Effects handle(Event event, Instant now);

  [[nodiscard]] Snapshot snapshot() const;

  // Pieces of work that have not begun.
  [[nodiscard]] std::size_t work_waiting() const { return work_.size(); }

  // Whether the executor may compute now. Asked after every event.
  [[nodiscard]] bool may_compute() const { return !pause_ || !pause_->keeps_shards || leave_; }

  // Whether lanes may begin units. Asked after every event.
  [[nodiscard]] bool may_begin_units() const {
    return phase_ == Phase::kActive && replies_.empty();
  }

  // Whether messages are to be read now. Asked after every event.
  [[nodiscard]] bool wants_more() const { return work_bytes_ < config_.work_bytes_max; }

 private:
  enum class Phase : std::uint8_t {
    kRetrying,  // until the next attempt
    kConnecting,
    kIntroduced,
    kActive,
    kClosing,
    kResting,   // paused, without a connection
    kFinished,  // the run is complete; it looks for no other
    kDone,
  };

  struct Pause {
    std::string reason;
    Instant hand_over_at{};
    Millis grace{};
    bool keeps_shards = true;  // hand_over_at has not come
  };

  // A hand-over of all shards that is under way, or due at the next Welcome.
  struct Leave {
    Instant by{};
    std::string reason;
    bool is_final = true;  // the program ends afterwards; otherwise it rests
  };

  // A shard whose chunks are being fetched.
  struct Load {
    LeaseGrant grant;
    std::uint32_t next_request = 0;
    std::set<std::uint32_t> missing;
    std::map<std::uint32_t, ShardRows> base_chunks;  // kept in case the connection breaks
  };

  // A waiting piece of work.
  struct Piece {
    Work work;
    std::size_t bytes = 0;  // on the wire
  };

  // A time in which the process or its machine stood still.
  struct Freeze {
    Micros lasted{};
    Instant end{};
  };

  // Chunks from a broken connection.
  struct Kept {
    LeaseEpoch epoch{};  // of the lease under which they were loaded
    RoundIndex base_round = 0;
    std::map<std::uint32_t, ShardRows> chunks;
  };

  // The view while connected (volunteer_core.cpp).
  [[nodiscard]] std::pair<Snapshot::Phase, std::string> active_view() const;
  [[nodiscard]] std::string retry_sentence() const;

  // -- events (volunteer_core.cpp)
  void on(const Started& event);
  void on(const Connected& event);
  void on(const ConnectFailed& event);
  void on(const Disconnected& event);
  void on(MessageReceived& event);
  void on(WorkDone& event);
  void on(LaneDone& event);
  void on(const StopRequested& event);
  void on(const PauseRequested& event);
  void on(const ResumeRequested& event);
  void on(const Tick& event);

  // -- messages and work (volunteer_messages.cpp)
  void on_message(Welcome& message);
  void on_message(Refusal& message);
  void on_message(LeaseGrant& message);
  void on_message(ShardChunk& message);
  void on_message(ReleaseRequest& message);
  void on_message(Revoke& message);
  void on_message(TrainUnit& message);
  void on_message(EvalUnit& message);
  void on_message(InputUnit& message);
  void on_message(Points& message);
  void on_message(CommitCredit& message);
  void on_message(Heartbeat& message);
  void on_message(Goodbye& message);

  // Keeps thanks that this run's master has signed for this volunteer; refuses others.
  void take_thanks(const SignedThanks& thanks);
  // False when the queue is full: then the connection and all loads are over.
  bool queue_work(Work work, std::size_t bytes = 0);
  void start_work();
  // Sends the replies to work of this generation, or hangs up because of the error. Ignores earlier
  // generations.
  void take(std::uint64_t generation, std::vector<Message>& replies,
            const std::optional<Error>& error);
  void request_chunks();
  void forget_shard(ShardId shard);
  // Sends an urgent reply now, and any other reply after the replies that wait.
  void send_in_order(Message message);
  // Sends waiting replies as far as the master gives credit.
  void send_replies();

  // -- connection (volunteer_core.cpp)
  void say(Message message);
  void notice_freeze(Instant now);
  // The reason for hanging up on a silent master.
  [[nodiscard]] std::string explain_silence() const;
  // The reason why a connection ended; names a freeze of this volunteer if there was one.
  [[nodiscard]] std::string explain_end(std::string reason) const;
  void retry_later(std::string why);
  // Measures the time of a round from the checkpoints in the master's news.
  void time_round(RoundIndex checkpoint);
  // Leaves when the remaining time is too short for a round and the hand-over.
  void leave_in_time();
  // Sends a heartbeat, which also tells whether the volunteer is paused.
  void say_heartbeat(std::uint64_t echoed_us);
  void stop_keeping();
  void end_pause_in_time();
  void hang_up(ErrorCode code, std::string why);
  void end_connection();
  void exit(bool success, Error error);

  const VolunteerCoreConfig config_;
  Instant now_{};
  Effects effects_;
  Backoff backoff_;
  Backoff keeping_backoff_;

  Phase phase_ = Phase::kRetrying;
  Instant phase_since_{};
  Instant last_met_{};  // when it last had a master, or needed none
  Instant next_attempt_{};
  std::string why_;                 // why there is no connection
  std::optional<Service> service_;  // once the run is complete
  std::optional<SignedThanks> thanks_;
  std::string thanks_refused_;
  bool is_unreached_ = false;  // the last attempt found no master
  std::optional<Pause> pause_;
  std::optional<Leave> leave_;

  std::uint64_t generation_ = 0;
  std::deque<Piece> work_;
  std::size_t work_bytes_ = 0;     // of all pieces in it
  std::size_t message_bytes_ = 0;  // of the message being handled
  bool is_working_ = false;

  // Waiting replies: commits until the master credits earlier parts, and the replies behind them.
  // Two open rounds bound the queue; without a hidden layer, the units that lanes have begun do.
  std::deque<Message> replies_;
  std::uint32_t commit_parts_ = 0;  // sent and not yet credited

  std::optional<ModelConfig> model_;
  std::string run_, purpose_;  // of the master's last Welcome
  Millis heartbeat_{1000};
  Millis silence_{10'000};
  Instant last_heard_{};
  Instant last_said_{};
  // the last freeze, until a heartbeat shows that the session survived it
  std::optional<Freeze> freeze_;
  std::map<ShardId, Load> loads_;
  std::set<std::pair<ShardId, std::uint32_t>> requested_;  // chunks on their way
  bool has_loaded_ = false;                                // a chunk came over this connection
  std::map<ShardId, Kept> kept_;
  std::set<ShardId> shards_;       // ready
  std::set<ShardId> kept_shards_;  // the executor has them from an earlier connection
  bool has_announced_ = false;     // its Hello announced kept shards: an offer is due
  RoundIndex offer_checkpoint_ = 0;
  std::optional<RunNews> news_;
  std::optional<RoundIndex> timed_checkpoint_;  // the last checkpoint in this connection's news
  std::optional<Instant> checkpoint_since_;     // when that news came, unless it was the first
  std::deque<double> round_us_;                 // times of the last rounds
  std::uint32_t memory_halvings_ = 0;  // how often the offered memory was halved: it ran out
  std::uint64_t units_ = 0;
  std::uint64_t examples_ = 0;
  std::uint64_t shard_examples_ = 0;  // remainder: examples for one shard
  std::uint64_t downloaded_bytes_ = 0;
  Micros served_{};     // while admitted, without the present connection
  Instant welcomed_{};  // of the present connection
};

}  // namespace gleaner::volunteer
