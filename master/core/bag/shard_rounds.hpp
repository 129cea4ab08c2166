// Open shard-rounds of a run without a hidden layer: who did each, with what result, and whether it
// counts. Used from the core only.
//
// A *claim* is a volunteer's account of its work: the result and the commit of a shard-round, or
// the scores of a shard at a checkpoint. A trusted volunteer's claim counts at once. A stranger's
// claim counts when another volunteer has got the same, or when an adaptive audit leaves it out (it
// is *excused*).
//
// The rounds of a shard *settle* in their order. A round settles when its claim counts and its
// commit is stored. A false claim therefore spoils one shard from one round on, and no settled
// round.
//
// Invariants
// - A volunteer that repeats a stranger's work is trusted, or came by another invite.
// - An audited volunteer's word convicts nobody: after a difference a trusted volunteer repeats the
//   work, and its answer decides.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "master/core/audits/audits.hpp"
#include "master/core/core_config.hpp"
#include "master/core/events.hpp"
#include "master/core/fingerprint.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/sessions.hpp"
#include "master/core/unit_ledger.hpp"

namespace gleaner {

// A volunteer that did a piece of work.
struct Doer {
  Volunteer who;
  bool is_trusted = false;
};

// A piece of work that can be repeated: a shard over `round`, or (`is_scores`) the scores of the
// shard at the end of `round`.
struct AuditPiece {
  RoundIndex round = 0;
  ShardId shard{};
  bool is_scores = false;
  friend auto operator<=>(const AuditPiece&, const AuditPiece&) = default;
};

class ShardRounds {
 public:
  // All but `resume` outlive it.
  ShardRounds(const RunSetup& run, Outbox& outbox, Sessions& sessions, Audits& audits,
              const ResumePoint& resume);

  // -- claims of a shard's holder
  void answered(RoundIndex round, ShardId shard, const Doer& doer, const UnitResult& result);
  void committed(RoundIndex round, ShardId shard, const Fingerprint& content);
  // The commit is in the store.
  void stored(RoundIndex round, ShardId shard);
  // Takes the scores of one chunk of the evaluation's examples. Chunks come in ascending order.
  void scored(RoundIndex checkpoint, ShardId shard, const Doer& doer, std::uint32_t chunk,
              EvalResult result);

  // Nobody holds the shard: results without a whole commit are void.
  void drop_unfinished(ShardId shard);

  // -- audits
  // The claims to be repeated, earliest round first.
  [[nodiscard]] const std::set<AuditPiece>& wanted() const { return wanted_; }

  // Whether anything has happened since the last call that gives volunteers more pieces to repeat.
  [[nodiscard]] bool take_news() { return std::exchange(has_news_, false); }

  // Whether the volunteer may repeat the piece.
  [[nodiscard]] bool may_audit(const AuditPiece& piece, const KeyId& key, const Standing& standing,
                               bool is_trusted) const;
  // Whether two volunteers differ on the piece, so that a trusted volunteer must decide.
  [[nodiscard]] bool is_disputed(const AuditPiece& piece) const;
  void begin_again(const AuditPiece& piece, const Doer& doer);
  void answered_again(ShardId shard, const UnitResult& result);
  void committed_again(ShardId shard, const Fingerprint& content);
  void scored_again(ShardId shard, const EvalResult& result);

  // The volunteer that repeats the shard's piece has stopped.
  void stop_again(ShardId shard) { again_.erase(shard); }

  // Whether a volunteer is repeating a piece of the shard.
  [[nodiscard]] bool is_done_again(ShardId shard) const { return again_.contains(shard); }

  // Whether the claim, complete or not, waits for an audit.
  [[nodiscard]] bool will_be_audited(const AuditPiece& piece) const;

  // -- consequences
  // The volunteer gave a false answer: its unconfirmed claims are void.
  void convict(const Volunteer& who, const std::string& what);

  // Shards with claims that have become void since the last call, each with the first round to be
  // trained again.
  [[nodiscard]] std::map<ShardId, RoundIndex> take_spoiled() { return std::exchange(spoiled_, {}); }

  [[nodiscard]] bool has_result(RoundIndex round, ShardId shard) const;

  [[nodiscard]] bool has_settled(RoundIndex round, ShardId shard) const {
    return settled_[raw(shard)] > round;
  }

  // All rounds of the shard before the returned one have settled.
  [[nodiscard]] RoundIndex settled_before(ShardId shard) const { return settled_[raw(shard)]; }

  // Whether the whole commit is here and not yet stored.
  [[nodiscard]] bool is_being_stored(RoundIndex round, ShardId shard) const;
  // Whether the shard still lacks scores that an evaluation at the checkpoint needs.
  [[nodiscard]] bool owes_scores(RoundIndex checkpoint, ShardId shard) const;
  // Whether all shards have settled the round.
  [[nodiscard]] bool has_settled(RoundIndex round) const;
  // How many shards have a result for the round.
  [[nodiscard]] std::uint32_t count_results(RoundIndex round) const;
  // The shards that have not settled the round.
  [[nodiscard]] std::vector<ShardId> missing(RoundIndex round) const;
  // Requires a round that has settled.
  [[nodiscard]] RoundSums sums(RoundIndex round) const;
  // Audits excused claims of the rounds up to this one. False when there are none.
  bool audit_after_all(RoundIndex round);
  // Returns the receipts of a settled round, one a shard, and the strangers with excused work in
  // it. Forgets the round, which is about to be folded.
  [[nodiscard]] Receipts fold(RoundIndex round);
  // The best neurons of each chunk's examples at the checkpoint; nullopt until all shards are
  // scored.
  [[nodiscard]] std::optional<std::vector<std::vector<ScoredNeuron>>> take_scores(
      RoundIndex checkpoint);

  // Trained batches, added up over the shards. Falls when claims become void.
  [[nodiscard]] std::uint64_t steps() const { return shard_batches_; }

  [[nodiscard]] BatchIndex batches_done() const {
    return shard_batches_ / run_.map.output_shards();
  }

 private:
  struct Dissent {
    std::vector<Fingerprint> prints;
    Volunteer who;
  };

  struct Claim {
    Volunteer who;
    bool is_trusted = false;
    bool is_stranger = false;  // whose work is done again
    bool is_complete = false;
    bool is_excused = false;
    bool is_confirmed = false;
    std::vector<Fingerprint> prints;  // result and commit, or one a chunk of scores
    std::optional<Dissent> dissent;
    KeyId auditor;
    std::string auditor_name;

    [[nodiscard]] bool is_open() const {
      return is_complete && is_stranger && !is_excused && !is_confirmed;
    }

    [[nodiscard]] bool counts() const { return is_complete && !is_open(); }
  };

  struct Work : Claim {
    ShardOutcome first, rest;
    bool is_stored = false;
  };

  struct Scores : Claim {
    std::vector<std::vector<ScoredNeuron>> lists;  // one a chunk, until they are merged
    bool is_merged = false;
  };

  struct Evaluated {
    std::map<ShardId, Scores> shards;
    std::vector<std::vector<ScoredNeuron>> best;  // one a chunk: of all shards that are merged
    std::uint32_t merged = 0;
  };

  // The answers of a volunteer that repeats a piece, so far.
  struct Again {
    AuditPiece piece;
    Doer doer;
    std::vector<Fingerprint> work;
    std::vector<Fingerprint> scores;
  };

  [[nodiscard]] Claim* find(const AuditPiece& piece);
  [[nodiscard]] const Claim* find(const AuditPiece& piece) const;
  void begin(Claim& claim, const Doer& doer) const;
  void file(const AuditPiece& piece, const Claim& claim);
  // Compares a claim with another volunteer's answers to the same piece.
  void judge_claim(const AuditPiece& piece, const Doer& doer,
                   const std::vector<Fingerprint>& prints);
  void judge_if_done(ShardId shard);
  void confirm(const AuditPiece& piece, Claim& claim, const Doer& by);
  void prove(const Volunteer& who);
  // Settles all rounds of the shard that can settle.
  void settle(ShardId shard);
  void merge(Evaluated& evaluated, Scores& scores);
  // Voids the shard's claims from the round on, and its later scores.
  void spoil(ShardId shard, RoundIndex round);
  [[nodiscard]] Receipt receipt_of(ShardId shard, const Work& work) const;

  [[nodiscard]] std::uint64_t batches_in(RoundIndex round) const {
    return run_.plan.round_end(round) - run_.plan.round_begin(round);
  }

  const RunSetup& run_;
  Outbox& outbox_;
  Sessions& sessions_;
  Audits& audits_;  // which keeps the convictions

  AuditSampler lot_;
  RoundIndex checkpoint_;            // rounds folded, or about to be
  RoundIndex evaluated_;             // the last checkpoint that was evaluated, or is about to be
  std::vector<RoundIndex> settled_;  // by shard: rounds before it have settled
  std::map<RoundIndex, std::uint32_t> settled_shards_;  // of a round
  std::map<std::pair<RoundIndex, ShardId>, Work> works_;
  std::map<RoundIndex, Evaluated> scores_;  // by checkpoint
  std::map<ShardId, Again> again_;
  std::set<AuditPiece> wanted_;
  bool has_news_ = false;  // wanted_ has changed
  std::map<ShardId, RoundIndex> spoiled_;
  std::uint64_t shard_batches_;
};

}  // namespace gleaner
