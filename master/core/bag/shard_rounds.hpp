// Shard-rounds that are not folded yet, in a run without a hidden layer: who has done each, what
// came of it, and whether it counts. Used from the core only.
//
// A *claim* is what one volunteer says that it got: the result and the commit of a shard-round, or
// the scores of a shard at a checkpoint. A trusted volunteer's claim counts at once. A stranger's
// claim counts when somebody else has got the same; under `adaptive` the lot may excuse it.
//
// A shard's rounds *settle* in their order: a round settles when its claim counts and its commit is
// stored. A false claim therefore spoils one shard from one round on, and nothing that has settled.
// Invariants
// - Whoever does a stranger's work again is trusted, or came by another invite.
// - Nobody is convicted on the word of somebody who is audited: after a difference a trusted
//   volunteer does the work again, and its answer decides.
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

// Somebody who did a piece of work.
struct Doer {
  Volunteer who;
  bool is_trusted = false;
};

// A piece of work that can be done again: a shard over round `round`, or, where only its scores are
// in question, the scores at the end of that round.
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

  // -- what the holder of a shard says
  void answered(RoundIndex round, ShardId shard, const Doer& doer, const UnitResult& result);
  void committed(RoundIndex round, ShardId shard, const Fingerprint& content);
  // Its commit is in the store.
  void stored(RoundIndex round, ShardId shard);
  // The scores of a chunk of the evaluation's examples, in the order of the chunks.
  void scored(RoundIndex checkpoint, ShardId shard, const Doer& doer, std::uint32_t chunk,
              EvalResult result);

  // Nobody holds the shard: results whose commits have not come are void.
  void drop_unfinished(ShardId shard);

  // -- the same work again
  // The claims that are to be done again, earliest round first.
  [[nodiscard]] const std::set<AuditPiece>& wanted() const { return wanted_; }

  // Whether something has happened since the last call after which a volunteer may find more pieces
  // to do again.
  [[nodiscard]] bool take_news() { return std::exchange(has_news_, false); }

  // Whether the volunteer may do the piece again.
  [[nodiscard]] bool may_audit(const AuditPiece& piece, const KeyId& key, const Standing& standing,
                               bool is_trusted) const;
  // Whether two volunteers differ on it, so that a trusted one must decide.
  [[nodiscard]] bool is_disputed(const AuditPiece& piece) const;
  // Somebody begins the piece.
  void begin_again(const AuditPiece& piece, const Doer& doer);
  void answered_again(ShardId shard, const UnitResult& result);
  void committed_again(ShardId shard, const Fingerprint& content);
  void scored_again(ShardId shard, const EvalResult& result);

  // That volunteer has stopped doing the piece.
  void stop_again(ShardId shard) { again_.erase(shard); }

  // Whether somebody has begun a piece of the shard again, and has not got to its end.
  [[nodiscard]] bool is_done_again(ShardId shard) const { return again_.contains(shard); }

  // Whether the claim, which may not be complete yet, counts only when somebody has done it again.
  [[nodiscard]] bool will_be_audited(const AuditPiece& piece) const;

  // -- what follows
  // An answer is false: the volunteer's claims that have not settled are void.
  void convict(const Volunteer& who, const std::string& what);

  // Shards whose claims have become void since the last call, each with the first round that is to
  // be trained again.
  [[nodiscard]] std::map<ShardId, RoundIndex> take_spoiled() { return std::exchange(spoiled_, {}); }

  // Whether the round of the shard has a result; whether it has settled.
  [[nodiscard]] bool has_result(RoundIndex round, ShardId shard) const;

  [[nodiscard]] bool has_settled(RoundIndex round, ShardId shard) const {
    return settled_[raw(shard)] > round;
  }

  // Rounds of the shard before this one have settled.
  [[nodiscard]] RoundIndex settled_before(ShardId shard) const { return settled_[raw(shard)]; }

  // Whether the whole commit is on its way to the store.
  [[nodiscard]] bool is_being_stored(RoundIndex round, ShardId shard) const;
  // Whether the shard is to be scored at the checkpoint, and nobody has done so.
  [[nodiscard]] bool owes_scores(RoundIndex checkpoint, ShardId shard) const;
  // Every shard has settled the round.
  [[nodiscard]] bool has_settled(RoundIndex round) const;
  // The number of its shards that have a result.
  [[nodiscard]] std::uint32_t count_results(RoundIndex round) const;
  // The shards without a settled claim for the round.
  [[nodiscard]] std::vector<ShardId> missing(RoundIndex round) const;
  // Requires a round that has settled.
  [[nodiscard]] RoundSums sums(RoundIndex round) const;
  // Audits what was excused in the rounds up to this one. False when nothing was.
  bool audit_after_all(RoundIndex round);
  // The receipts of a round that has settled, one a shard, and the strangers with excused work in
  // it. The round is about to be folded, and is forgotten.
  [[nodiscard]] Receipts fold(RoundIndex round);
  // The best neurons of every chunk's examples at the checkpoint, once all shards are scored.
  [[nodiscard]] std::optional<std::vector<std::vector<ScoredNeuron>>> take_scores(
      RoundIndex checkpoint);

  // Batches that have been trained, added up over the shards. Falls when claims become void.
  [[nodiscard]] std::uint64_t steps() const { return shard_batches_; }

  // Batches that all shards together have trained, divided by the number of shards.
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

  // Somebody's answers to a piece, so far.
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
  // Compares one claim with somebody's answer to the same.
  void judge_claim(const AuditPiece& piece, const Doer& doer,
                   const std::vector<Fingerprint>& prints);
  void judge_if_done(ShardId shard);
  void confirm(const AuditPiece& piece, Claim& claim, const Doer& by);
  void prove(const Volunteer& who);
  // Settles what can be settled of the shard.
  void settle(ShardId shard);
  void merge(Evaluated& evaluated, Scores& scores);
  // The shard's claims from the round on, and its scores after it, are void.
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
  bool has_news_ = false;  // about what is wanted
  std::map<ShardId, RoundIndex> spoiled_;
  std::uint64_t shard_batches_;
};

}  // namespace gleaner
