// Decides who holds which shard, by measured speeds and by memory. Placement never changes a number
// of the model. Used from the core only.
//
// Owns the leases and the balance of the last rounds. A volunteer's speed, and the reason why it
// gets no shards, are in its session.
//
// Invariants
// - A shard leaves its holder only when none of its units is out, or when the session ends.
// - Shards move between two rounds only, one wave at a time.
// - A free shard is granted from stored commits, or from a whole hand-over on top of them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "master/core/balancer.hpp"
#include "master/core/input_stream.hpp"
#include "master/core/lease_table.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/sessions.hpp"

namespace gleaner {

// Shards of the two layers are allocated separately.
enum class Layer : std::uint8_t { kOutput, kInput };

class Placement {
 public:
  // All but `resume` outlive it. `input` is set when volunteers hold the input layer.
  Placement(const RunSetup& run, Outbox& outbox, Sessions& sessions, const Pipeline& pipeline,
            std::optional<InputStream>& input, const ResumePoint& resume);

  [[nodiscard]] LeaseTable& leases() { return leases_; }

  [[nodiscard]] const LeaseTable& leases() const { return leases_; }

  // Second leases of output shards, for auditors. An auditor's results are only compared.
  [[nodiscard]] LeaseTable& shadows() { return shadows_; }

  [[nodiscard]] const LeaseTable& shadows() const { return shadows_; }

  // Counts leases and shadow leases.
  [[nodiscard]] std::uint32_t shards_at(SessionId id) const {
    return static_cast<std::uint32_t>(leases_.count_held_by(id) + shadows_.count_held_by(id));
  }

  // Whether the volunteer has missed two heartbeats: it may be dead, and gets no more shards.
  [[nodiscard]] bool is_quiet(const SessionState& session) const {
    return sessions_.last_tick() - session.last_heard > run_.config.heartbeat * 5 / 2;
  }

  // Whether the session's memory takes `shadows` more output shards.
  [[nodiscard]] bool has_room_for_shadows(SessionId id, const SessionState& session,
                                          std::size_t shadows) const;
  // The message that lends a shard on trial, as of a checkpoint. The lease stands in no table, and
  // its holder's work is not used.
  [[nodiscard]] LeaseGrant make_trial_grant(ShardId shard, RoundIndex base_round);
  // The tasks that read a shard's rows as of a checkpoint for the master. They have no session, and
  // carry the checkpoint in place of an epoch.
  [[nodiscard]] std::vector<ReadChunkTask> reads_of(ShardId shard, RoundIndex base_round) const;
  // Lends a free shard as of its last commit.
  void lend(ShardId shard, SessionId id);
  // Lends an auditor a shard as of a checkpoint.
  void lend_shadow(ShardId shard, SessionId auditor, RoundIndex base_round);
  // The number of its shadowed output shards that the session may take over.
  [[nodiscard]] std::uint32_t room_to_take_over(SessionId id) const;
  // Whether the shadow's holder could go on with the shard from where the shadow stands.
  [[nodiscard]] bool can_take_over(ShardId shard) const;
  // Whether a free shard waits for its shadow's holder to take it over.
  [[nodiscard]] bool is_on_standby(ShardId shard) const;
  // Turns the shadow into the shard's lease. The holder is not told: the lease keeps its epoch.
  void take_over(ShardId shard);

  [[nodiscard]] std::uint32_t shards_in(Layer layer) const;
  // Ascending.
  [[nodiscard]] std::vector<ShardId> held_by(SessionId holder, Layer layer) const;
  [[nodiscard]] std::uint32_t count_held_by(SessionId holder, Layer layer) const;
  // The shards that the holder has loaded and was not asked to hand over.
  [[nodiscard]] std::vector<ShardId> ready_at(SessionId holder, Layer layer) const;
  // Whether the session owes a result, a commit, an offer, a load or a hand-over.
  [[nodiscard]] bool owes(SessionId id, const SessionState& session) const;
  // -- outstanding work (placement_messages.cpp)
  // The outstanding work of the session that is due first. Its deadline counts from when it began:
  // the time that Sessions::time_for gives, and what the bytes of a shard take on a thin line.
  std::optional<OutstandingWork> first_outstanding(SessionId id, SessionState& session);
  // Sets deadlines for commits that the session owes now: it has answered a unit on these shards.
  void note_outstanding_commits(SessionId id, SessionState& session,
                                const std::vector<LeaseRef>& leases);
  [[nodiscard]] OutstandingWork begin_outstanding(Obligation what, ShardId shard, SessionId id,
                                                  SessionState& session) const;
  // The store had no room, and nobody could work: all outstanding work has its full time again.
  void restart_outstanding();

  // Free shards wait until then for volunteers that may come back with them.
  [[nodiscard]] const std::optional<Instant>& rejoin_until() const { return rejoin_until_; }

  // -- decisions
  // Lends free shards, and asks shards back that should move.
  void update();

  // A free shard may find a receiver where it found none before.
  void look_again() { has_news_ = true; }

  // A round is folded: measures whether the allocation is still fair, and records why volunteers
  // get no shards.
  void weigh_balance();

  // A volunteer has come that is to get shards at once.
  void newcomer_came() { has_newcomer_ = true; }

  // Doubles the measured speed of a volunteer without shards from time to time: it may be fast
  // again.
  void forget_slowness(SessionId id, SessionState& session) const;
  // Asks a leaving volunteer for all its shards.
  void ask_back(SessionId id, SessionState& session, const std::string& reason);
  // Frees the shards of a session that is over, and returns their number.
  std::uint32_t holder_gone(SessionId id, const std::string& name, const std::string& reason,
                            RoundIndex checkpoint);

  // -- messages about shards (placement_messages.cpp). An error ends the session.
  // `digests` are the checkpoint's, one a shard, or none. `is_folding`: the checkpoint is about to
  // change.
  Result<void> receive(SessionId id, SessionState& session, const ShardOffer& offer,
                       RoundIndex checkpoint, bool is_folding,
                       std::span<const ShardDigest> digests);
  Result<void> receive(SessionId id, SessionState& session, const ChunkRequest& request);
  Result<void> receive(SessionId id, const ShardReady& ready);
  Result<void> receive(SessionId id, SessionState& session, HandOver& part);
  void on(ChunkRead& event);

 private:
  [[nodiscard]] Layer layer_of(ShardId shard) const {
    return run_.map.is_output(shard) ? Layer::kOutput : Layer::kInput;
  }

  // The obligation under the lease at present, if any.
  [[nodiscard]] std::optional<Obligation> owed(const SessionState& session, ShardId shard,
                                               const ShardLease& lease) const;
  // Asks the holder for a shard that is ready.
  void ask_for(ShardId shard, SessionId holder, SessionState& session);
  // Chunks that the session has requested and not got. Ended leases do not count.
  [[nodiscard]] std::size_t awaited_chunks(SessionId id, SessionState& session) const;
  // Reads waiting chunks up to a limit, which chunks of ended leases count against while they are
  // read.
  void read_waiting(SessionId id, SessionState& session);
  // Whether free shards still wait for volunteers that may come back with them.
  bool waits_for_rejoin();
  void lend_free_shards();
  [[nodiscard]] bool may_be_lent(ShardId shard) const;
  [[nodiscard]] LeaseGrant grant(LeaseTable& table, ShardId shard, SessionId id);
  // The table in which the session holds the lease; null when the session holds no such lease.
  [[nodiscard]] LeaseTable* table_of(const LeaseRef& lease, SessionId id);
  void begin_input(ShardId shard, SessionState& session, BatchIndex next_batch);
  // Chunks of a shard as of a checkpoint; 0 where every row follows from the configuration.
  [[nodiscard]] std::uint32_t base_chunks(ShardId shard, RoundIndex base_round) const;
  [[nodiscard]] std::uint32_t rows_per_chunk(ShardId shard) const;
  [[nodiscard]] ReadChunkTask read_of(SessionId session, const LeaseRef& lease, std::uint32_t chunk,
                                      RoundIndex base_round) const;
  // How often each label of the shard's neurons occurs in the training data.
  [[nodiscard]] std::vector<std::uint32_t> label_counts(ShardId shard) const;

  // -- moves of shards (placement_balance.cpp)
  void rebalance();
  void move_shards(Layer layer, const std::vector<Holder>& candidates, const char* why);
  void notice_quarantined();
  void explain_shares(std::span<const Holder> holders);

  // Summed over the volunteers that have trained: measured and claimed speeds.
  struct Speeds {
    double trained = 0;
    double claimed = 0;
    double lowest = std::numeric_limits<double>::infinity();  // lowest claim of anybody here
  };

  [[nodiscard]] Speeds speeds() const;
  [[nodiscard]] std::vector<Holder> holders(Layer layer) const;
  // How much the run relies on a volunteer.
  enum class Reliance : std::uint8_t { kProven, kNewcomer, kQuarantined };

  [[nodiscard]] Reliance reliance_on(const SessionState& session) const;
  // Newcomers get no further shards while proven volunteers have room for all. Quarantined
  // volunteers get none while these two kinds have room for all.
  void prefer_reliable(std::vector<Holder>& holders, Layer layer) const;
  // How many shards of the layer the volunteer's memory takes beside its other shards.
  [[nodiscard]] std::uint32_t capacity(SessionId id, const SessionState& session,
                                       Layer layer) const;
  // The output shards that a stranger may hold while others have room for the rest: one until one
  // of its commits is stored, then a third.
  [[nodiscard]] std::uint32_t limit(const SessionState& session) const;
  // Bytes of all shards at the session, shadows included.
  [[nodiscard]] std::uint64_t bytes_at(SessionId id) const;
  // Whether the others have room for all shards of the layer, so that the session need hold none.
  [[nodiscard]] bool can_do_without(SessionId id, Layer layer) const;
  [[nodiscard]] bool is_between_rounds() const;
  [[nodiscard]] bool is_move_worth_while(const std::vector<Holder>& candidates) const;

  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  const Pipeline& pipeline_;
  std::optional<InputStream>& input_;

  LeaseEpochs epochs_;
  LeaseTable leases_;
  LeaseTable shadows_;
  bool expects_rejoin_;                  // all holders were lost; rejoin_grace is about to begin
  std::optional<Instant> rejoin_until_;  // until then free shards wait for their last holders
  bool has_newcomer_ = false;            // a volunteer is to get shards at once
  bool has_news_ = true;                 // free shards may find receivers since they were last lent
  std::optional<BatchIndex> stays_at_;   // at this frontier no move is worth while
  std::uint32_t unbalanced_rounds_ = 0;  // rounds in a row
  std::optional<Instant> last_loss_;     // when a volunteer vanished with shards
  Micros loading_time_{0};               // from the last grant to its ShardReady
};

}  // namespace gleaner
