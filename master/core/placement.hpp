// Who holds which shard, and why. Decides on measured speeds and on memory; nothing here can change
// a number of the model. Used from the core only.
//
// Owns the leases, and what the balance was in the last rounds. Each volunteer's speed, and why it
// gets no shards, stand in its session.
// Invariants
// - A shard leaves its holder only when none of its units is out, unless the session ends.
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

// The two kinds of shards, which are allocated each by itself.
enum class Layer : std::uint8_t { kOutput, kInput };

class Placement {
 public:
  // All but `resume` outlive it. `input` is set where volunteers hold the input layer.
  Placement(const RunSetup& run, Outbox& outbox, Sessions& sessions, const Pipeline& pipeline,
            std::optional<InputStream>& input, const ResumePoint& resume);

  [[nodiscard]] LeaseTable& leases() { return leases_; }

  [[nodiscard]] const LeaseTable& leases() const { return leases_; }

  // Output shards that auditors hold too. What they do with them is compared and goes no further.
  [[nodiscard]] LeaseTable& shadows() { return shadows_; }

  [[nodiscard]] const LeaseTable& shadows() const { return shadows_; }

  // Counts leases and shadow leases.
  [[nodiscard]] std::uint32_t shards_at(SessionId id) const {
    return static_cast<std::uint32_t>(leases_.count_held_by(id) + shadows_.count_held_by(id));
  }

  // Whether it has missed two heartbeats: it may be dead, and gets no more shards.
  [[nodiscard]] bool is_quiet(const SessionState& session) const {
    return sessions_.last_tick() - session.last_heard > run_.config.heartbeat * 5 / 2;
  }

  // Whether the session's memory takes `shadows` more output shards.
  [[nodiscard]] bool has_room_for_shadows(SessionId id, const SessionState& session,
                                          std::size_t shadows) const;
  // The message that lends a shard on trial, as of a checkpoint. The lease stands in no table, and
  // its holder's work is not used.
  [[nodiscard]] LeaseGrant make_trial_grant(ShardId shard, RoundIndex base_round);
  // The tasks that read a shard's rows as of a checkpoint. They bear no session, since no volunteer
  // has asked, and the checkpoint in place of an epoch.
  [[nodiscard]] std::vector<ReadChunkTask> reads_of(ShardId shard, RoundIndex base_round) const;
  // Lends a free shard as of its last commit.
  void lend(ShardId shard, SessionId id);
  // Lends an auditor a shard as of a checkpoint.
  void lend_shadow(ShardId shard, SessionId auditor, RoundIndex base_round);
  // How many output shards whose shadows the session holds it may hold in earnest.
  [[nodiscard]] std::uint32_t room_to_take_over(SessionId id) const;
  // Whether the holder of the shadow could go on in place of the shard's last holder, from where
  // the shadow stands.
  [[nodiscard]] bool can_take_over(ShardId shard) const;
  // Whether a free shard is kept for the holder of its shadow.
  [[nodiscard]] bool is_on_standby(ShardId shard) const;
  // The shadow becomes the lease. Its holder is not told: it goes on under the same number.
  void take_over(ShardId shard);

  // Number of shards of the layer that volunteers hold.
  [[nodiscard]] std::uint32_t shards_in(Layer layer) const;
  // Ascending.
  [[nodiscard]] std::vector<ShardId> held_by(SessionId holder, Layer layer) const;
  [[nodiscard]] std::uint32_t count_held_by(SessionId holder, Layer layer) const;
  // The shards that the holder has loaded and is not to give back.
  [[nodiscard]] std::vector<ShardId> ready_at(SessionId holder, Layer layer) const;
  // Whether something is awaited of the session: a result, a commit, an offer, a shard to be loaded
  // or handed over.
  [[nodiscard]] bool owes(SessionId id, const SessionState& session) const;
  // -- outstanding work (placement_outstanding.cpp)
  // The outstanding work of the session that is due first. Its deadline counts from when it began:
  // the time that Sessions::time_for gives, and what the bytes of a shard take on a thin line.
  std::optional<OutstandingWork> first_outstanding(SessionId id, SessionState& session);
  // A unit on these shards is answered: commits may be owed from now on.
  void note_outstanding_commits(SessionId id, SessionState& session,
                                const std::vector<LeaseRef>& leases);
  [[nodiscard]] OutstandingWork begin_outstanding(Obligation what, ShardId shard, SessionId id,
                                                  SessionState& session) const;
  // Nobody could do what it owed: everything that is awaited has its full time again.
  void restart_outstanding();

  // Until when free shards are kept for volunteers that may come back with them.
  [[nodiscard]] const std::optional<Instant>& rejoin_until() const { return rejoin_until_; }

  // -- decisions
  // Lends free shards, and asks shards back that should move.
  void update();

  // A free shard may find a receiver that it did not find before.
  void look_again() { has_news_ = true; }

  // A round is folded: measures whether the allocation is still fair, and tells those who get
  // nothing why.
  void weigh_balance();

  // Somebody has come who is to get shards at once.
  void newcomer_came() { has_newcomer_ = true; }

  // A volunteer without shards may be fast again: its measured speed counts less and less.
  void forget_slowness(SessionId id, SessionState& session) const;
  // Asks everything back from a volunteer that wants to go.
  void ask_back(SessionId id, SessionState& session, const std::string& reason);
  // Frees what a session that is over held. Returns the number of shards.
  std::uint32_t holder_gone(SessionId id, const std::string& name, const std::string& reason,
                            RoundIndex checkpoint);

  // -- messages about shards (placement_messages.cpp). An error ends the session.
  // `digests` are the checkpoint's, one per shard or none; `is_folding`: it is about to be
  // replaced.
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

  // The obligation that the lease's holder has for it now, if any.
  [[nodiscard]] std::optional<Obligation> owed(const SessionState& session, ShardId shard,
                                               const ShardLease& lease) const;
  // Asks a shard that is ready back.
  void ask_for(ShardId shard, SessionId holder, SessionState& session);
  // Chunks that the session has asked for, not yet sent; those of leases that have ended do not
  // count.
  [[nodiscard]] std::size_t awaited_chunks(SessionId id, SessionState& session) const;
  // Reads what it waits for, as far as reads of ended leases leave room.
  void read_waiting(SessionId id, SessionState& session);
  // Whether free shards are still kept for volunteers that may come back with them.
  bool waits_for_rejoin();
  void lend_free_shards();
  [[nodiscard]] bool may_be_lent(ShardId shard) const;
  [[nodiscard]] LeaseGrant grant(LeaseTable& table, ShardId shard, SessionId id);
  // The table in which the session holds the lease; null for anything else a peer may claim.
  [[nodiscard]] LeaseTable* table_of(const LeaseRef& lease, SessionId id);
  // The shard is lent to the session and stands before `next_batch`.
  void begin_input(ShardId shard, SessionState& session, BatchIndex next_batch);
  // Chunks of a shard as of a checkpoint: none where every row follows from the configuration.
  [[nodiscard]] std::uint32_t base_chunks(ShardId shard, RoundIndex base_round) const;
  [[nodiscard]] std::uint32_t rows_per_chunk(ShardId shard) const;
  [[nodiscard]] ReadChunkTask read_of(SessionId session, const LeaseRef& lease, std::uint32_t chunk,
                                      RoundIndex base_round) const;
  // How often each label of the shard's neurons is in the training data.
  [[nodiscard]] std::vector<std::uint32_t> label_counts(ShardId shard) const;

  // -- (placement_balance.cpp)
  void rebalance();
  void move_shards(Layer layer, const std::vector<Holder>& candidates, const char* why);
  void notice_quarantined();
  void explain_shares(std::span<const Holder> holders);

  // The speeds of those that have trained, together: as measured, and as they claimed.
  struct Speeds {
    double trained = 0;
    double claimed = 0;
    double lowest = std::numeric_limits<double>::infinity();  // the lowest claim of anybody here
  };

  [[nodiscard]] Speeds speeds() const;
  [[nodiscard]] std::vector<Holder> holders(Layer layer) const;
  // How far others may wait for a volunteer.
  enum class Reliance : std::uint8_t { kProven, kNewcomer, kQuarantined };

  [[nodiscard]] Reliance reliance_on(const SessionState& session) const;
  // Newcomers get no further shards while the proven have room for all. Quarantined volunteers get
  // none while proven ones and newcomers have room for all.
  void prefer_reliable(std::vector<Holder>& holders, Layer layer) const;
  // Shards of the layer that its memory takes beside everything else that it holds.
  [[nodiscard]] std::uint32_t capacity(SessionId id, const SessionState& session,
                                       Layer layer) const;
  // The output shards that a stranger gets while others have room for the rest: one until a commit
  // of it is stored, then a third.
  [[nodiscard]] std::uint32_t limit(const SessionState& session) const;
  // Bytes that all shards at the session take, shadows among them.
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
  bool expects_rejoin_;                  // all holders were lost; the grace is about to begin
  std::optional<Instant> rejoin_until_;  // while free shards are kept for those who have them
  bool has_newcomer_ = false;            // who is to get shards at once
  bool has_news_ = true;                 // since free shards were last lent
  std::optional<BatchIndex> stays_at_;   // between these rounds no move is worth while
  std::uint32_t unbalanced_rounds_ = 0;  // in a row
  std::optional<Instant> last_loss_;     // of a volunteer with shards that it did not hand over
  Micros loading_time_{0};               // from a grant to its ShardReady, the last one
};

}  // namespace gleaner
