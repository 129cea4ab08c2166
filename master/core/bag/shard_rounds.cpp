#include "master/core/bag/shard_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "common/result.hpp"
#include "master/core/evaluations.hpp"

namespace gleaner {
namespace {

void add(const ShardOutcome& outcome, RoundSums& sums) {
  sums.loss = add_losses(sums.loss, outcome.loss);
  sums.active += outcome.active;
}

std::string describe(const AuditPiece& piece) {
  return fmt::format("{} of shard {} {} round {}", piece.is_scores ? "the scores" : "the work",
                     raw(piece.shard), piece.is_scores ? "after" : "in", piece.round);
}

// Merges the best neurons of each example, from two lists with a fixed number of neurons per
// example.
std::vector<ScoredNeuron> merged(const std::vector<ScoredNeuron>& one,
                                 const std::vector<ScoredNeuron>& other, std::size_t examples,
                                 std::uint32_t top_k) {
  std::vector<ScoredNeuron> best;
  const std::size_t width = one.size() / examples;
  const std::size_t other_width = other.size() / examples;
  for (std::size_t i = 0; i < examples; ++i) {
    const std::span<const ScoredNeuron> lists[] = {
        std::span(one).subspan(i * width, width),
        std::span(other).subspan(i * other_width, other_width)};
    const auto both = merge_top_k(lists, top_k);
    best.insert(best.end(), both.begin(), both.end());
  }
  return best;
}

}  // namespace

ShardRounds::ShardRounds(const RunSetup& run, Outbox& outbox, Sessions& sessions, Audits& audits,
                         const ResumePoint& resume)
    : run_(run),
      outbox_(outbox),
      sessions_(sessions),
      audits_(audits),
      lot_(run.config),
      checkpoint_(resume.checkpoint),
      evaluated_(resume.is_evaluated ? resume.checkpoint : 0),
      settled_(run.map.output_shards(), resume.checkpoint),
      shard_batches_(run.plan.round_begin(resume.checkpoint) * run.map.output_shards()) {
  for (const SettledRound& settled : resume.settled) {
    const WorkVerdict verdict = settled.receipt.verdict;
    const bool is_enough =
        verdict != WorkVerdict::kUnaudited || run.config.audit == AuditMode::kOff;
    if (!is_enough || settled_[raw(settled.shard)] != settled.round) continue;
    Work work;
    work.who = {{}, settled.receipt.holder, {}, settled.receipt.holder_name};
    work.is_trusted = verdict == WorkVerdict::kTrusted;
    work.is_stranger = work.is_confirmed = verdict == WorkVerdict::kConfirmed;
    work.is_complete = work.is_stored = true;
    work.auditor = settled.receipt.auditor;
    work.auditor_name = settled.receipt.auditor_name;
    work.first = settled.first;
    work.rest = settled.rest;
    works_.emplace(std::pair(settled.round, settled.shard), std::move(work));
    settled_[raw(settled.shard)] = settled.round + 1;
    ++settled_shards_[settled.round];
    shard_batches_ += batches_in(settled.round);
  }
}

// ---- Claims ------------------------------------------------------------------------------------

ShardRounds::Claim* ShardRounds::find(const AuditPiece& piece) {
  return const_cast<Claim*>(std::as_const(*this).find(piece));
}

const ShardRounds::Claim* ShardRounds::find(const AuditPiece& piece) const {
  if (!piece.is_scores) {
    const auto work = works_.find({piece.round, piece.shard});
    return work == works_.end() ? nullptr : &work->second;
  }
  const auto evaluated = scores_.find(piece.round + 1);
  if (evaluated == scores_.end()) return nullptr;
  const auto scores = evaluated->second.shards.find(piece.shard);
  return scores == evaluated->second.shards.end() ? nullptr : &scores->second;
}

void ShardRounds::file(const AuditPiece& piece, const Claim& claim) {
  if (claim.is_open()) {
    wanted_.insert(piece);
    has_news_ = true;
  } else {
    wanted_.erase(piece);
  }
}

void ShardRounds::begin(Claim& claim, const Doer& doer) const {
  claim.who = doer.who;
  claim.is_trusted = doer.is_trusted;
  claim.is_stranger = !doer.is_trusted && run_.config.audit != AuditMode::kOff;
}

void ShardRounds::answered(RoundIndex round, ShardId shard, const Doer& doer,
                           const UnitResult& result) {
  const auto [entry, is_new] = works_.try_emplace({round, shard});
  if (is_new) shard_batches_ += batches_in(round);
  Work& work = entry->second;
  work = Work{};
  begin(work, doer);
  work.is_excused = work.is_stranger && !lot_.is_drawn(doer.who.identity, round);
  work.first = result.batches.front().shards.front();
  work.rest.shard = shard;
  if (result.batches.size() > 1) work.rest = result.batches.back().shards.front();
  work.prints.push_back(fingerprint(result));
}

void ShardRounds::committed(RoundIndex round, ShardId shard, const Fingerprint& content) {
  const auto work = works_.find({round, shard});
  if (work == works_.end()) return;
  work->second.prints.resize(1);
  work->second.prints.push_back(content);
  work->second.is_complete = true;
  file({round, shard, false}, work->second);
  settle(shard);
}

void ShardRounds::stored(RoundIndex round, ShardId shard) {
  const auto work = works_.find({round, shard});
  if (work == works_.end()) return;
  work->second.is_stored = true;
  has_news_ = true;
  settle(shard);
}

void ShardRounds::scored(RoundIndex checkpoint, ShardId shard, const Doer& doer,
                         std::uint32_t chunk, EvalResult result) {
  if (!owes_scores(checkpoint, shard)) return;
  Scores& scores = scores_[checkpoint].shards[shard];
  if (chunk == 0) {
    scores = Scores{};
    begin(scores, doer);
  }
  if (chunk != scores.prints.size() || scores.who.session != doer.who.session) return;
  scores.prints.push_back(fingerprint(result));
  scores.lists.push_back(std::move(result.best));
  if (scores.prints.size() < score_chunks(run_.config)) return;
  scores.is_complete = true;
  file({checkpoint - 1, shard, true}, scores);
  settle(shard);
}

void ShardRounds::drop_unfinished(ShardId shard) {
  for (RoundIndex round = settled_[raw(shard)];; ++round) {
    const auto work = works_.find({round, shard});
    if (work == works_.end()) return;
    if (work->second.is_complete) continue;
    shard_batches_ -= batches_in(round);
    works_.erase(work);
    return;
  }
}

// ---- The same again ----------------------------------------------------------------------------

bool ShardRounds::may_audit(const AuditPiece& piece, const KeyId& key, const Standing& standing,
                            bool is_trusted) const {
  const Claim* const claim = find(piece);
  if (claim == nullptr || claim->who.identity == key) return false;
  return is_trusted || (!claim->dissent && standing.invite != claim->who.invite);
}

bool ShardRounds::is_disputed(const AuditPiece& piece) const {
  const Claim* const claim = find(piece);
  return claim != nullptr && claim->dissent.has_value();
}

bool ShardRounds::will_be_audited(const AuditPiece& piece) const {
  const Claim* const claim = find(piece);
  return claim != nullptr && claim->is_stranger && !claim->is_excused && !claim->is_confirmed;
}

void ShardRounds::begin_again(const AuditPiece& piece, const Doer& doer) {
  again_[piece.shard] = Again{piece, doer, {}, {}};
}

void ShardRounds::answered_again(ShardId shard, const UnitResult& result) {
  const auto again = again_.find(shard);
  if (again != again_.end()) again->second.work.assign(1, fingerprint(result));
}

void ShardRounds::committed_again(ShardId shard, const Fingerprint& content) {
  const auto again = again_.find(shard);
  if (again == again_.end() || again->second.work.size() != 1) return;
  again->second.work.push_back(content);
  judge_if_done(shard);
}

void ShardRounds::scored_again(ShardId shard, const EvalResult& result) {
  const auto again = again_.find(shard);
  if (again == again_.end()) return;
  again->second.scores.push_back(fingerprint(result));
  judge_if_done(shard);
}

void ShardRounds::judge_if_done(ShardId shard) {
  const Again& again = again_.at(shard);
  const std::vector<Fingerprint>& prints = again.piece.is_scores ? again.scores : again.work;
  if (prints.size() < (again.piece.is_scores ? score_chunks(run_.config) : 2)) return;
  const Again done = again;
  again_.erase(shard);
  judge_claim(done.piece, done.doer, done.piece.is_scores ? done.scores : done.work);
}

void ShardRounds::judge_claim(const AuditPiece& piece, const Doer& doer,
                              const std::vector<Fingerprint>& prints) {
  Claim* const claim = find(piece);
  if (claim == nullptr || !claim->is_open()) return;
  const bool is_same = claim->prints == prints;
  if (doer.is_trusted) {
    const std::optional<Dissent> dissent = std::exchange(claim->dissent, std::nullopt);
    if (is_same) {
      confirm(piece, *claim, doer);
    } else {
      convict(Volunteer(claim->who), describe(piece) + " is not what a trusted volunteer gets");
    }
    if (dissent && dissent->prints != prints) {
      convict(dissent->who, describe(piece) + " is not what a trusted volunteer gets");
    }
    return;
  }
  if (is_same) return confirm(piece, *claim, doer);
  outbox_.log(LogLevel::kWarning, "audit_differs",
              fmt::format("{} by {} differs from what {} gets: a trusted volunteer does it again "
                          "and decides",
                          describe(piece), claim->who.name, doer.who.name));
  claim->dissent = Dissent{prints, doer.who};
  has_news_ = true;
}

void ShardRounds::confirm(const AuditPiece& piece, Claim& claim, const Doer& by) {
  claim.is_confirmed = true;
  claim.auditor = by.who.identity;
  claim.auditor_name = by.who.name;
  file(piece, claim);
  prove(claim.who);
  prove(by.who);
  settle(piece.shard);
}

void ShardRounds::prove(const Volunteer& who) {
  SessionState* const session = sessions_.find(who.session);
  if (session != nullptr && sessions_.is_newcomer(*session)) sessions_.prove(*session);
}

// ---- What follows ------------------------------------------------------------------------------

void ShardRounds::convict(const Volunteer& who, const std::string& what) {
  std::vector<std::pair<ShardId, RoundIndex>> void_from;
  const auto is_void = [&](const Claim& claim) {
    return claim.who.identity == who.identity && claim.is_stranger && !claim.is_confirmed;
  };
  for (const auto& [key, work] : works_) {
    if (is_void(work)) void_from.emplace_back(key.second, key.first);
  }
  // False scores cannot be repeated by their holder: its next round has replaced the rows.
  for (const auto& [checkpoint, evaluated] : scores_) {
    for (const auto& [shard, scores] : evaluated.shards) {
      if (is_void(scores)) void_from.emplace_back(shard, checkpoint);
    }
  }
  for (const auto& [shard, round] : void_from) spoil(shard, round);
  audits_.convict({who, what, false});
}

void ShardRounds::spoil(ShardId shard, RoundIndex round) {
  std::erase_if(works_, [&](const auto& entry) {
    const bool is_void = entry.first.second == shard && entry.first.first >= round;
    if (is_void) shard_batches_ -= batches_in(entry.first.first);
    return is_void;
  });
  for (auto& [checkpoint, evaluated] : scores_) {
    if (checkpoint < round) continue;
    const auto scores = evaluated.shards.find(shard);
    // Scores at the beginning of the round stay, unless they are void themselves.
    if (scores == evaluated.shards.end() || scores->second.is_merged ||
        (checkpoint == round && scores->second.counts())) {
      continue;
    }
    evaluated.shards.erase(scores);
  }
  std::erase_if(wanted_, [&](const AuditPiece& piece) {
    return piece.shard == shard && find(piece) == nullptr;
  });
  again_.erase(shard);
  for (RoundIndex& next = settled_[raw(shard)]; next > round; --next) {
    --settled_shards_[next - 1];
  }
  const auto [spoiled, is_new] = spoiled_.try_emplace(shard, round);
  spoiled->second = std::min(spoiled->second, round);
}

void ShardRounds::settle(ShardId shard) {
  RoundIndex& next = settled_[raw(shard)];
  for (auto work = works_.find({next, shard}); work != works_.end();
       work = works_.find({next, shard})) {
    if (!work->second.counts() || !work->second.is_stored) break;
    ++settled_shards_[next];
    // An excused claim may be audited later, as long as this process lives.
    if (work->second.is_excused) {
      sessions_.note_trained(work->second.who.identity);
    } else {
      outbox_.push(StorageTask(SettleTask{
          {next, shard, work->second.first, work->second.rest, receipt_of(shard, work->second)}}));
    }
    ++next;
  }
  for (auto& [checkpoint, evaluated] : scores_) {
    if (checkpoint > next) break;
    const auto scores = evaluated.shards.find(shard);
    if (scores != evaluated.shards.end() && scores->second.counts() && !scores->second.is_merged) {
      merge(evaluated, scores->second);
    }
  }
}

void ShardRounds::merge(Evaluated& evaluated, Scores& scores) {
  scores.is_merged = true;
  ++evaluated.merged;
  if (evaluated.best.empty()) {
    evaluated.best = std::move(scores.lists);
  } else {
    for (std::size_t chunk = 0; chunk < scores.lists.size(); ++chunk) {
      const std::uint64_t begin = chunk * kScoreChunk;
      const std::uint64_t examples =
          std::min<std::uint64_t>(kScoreChunk, run_.config.evaluated_points() - begin);
      evaluated.best[chunk] =
          merged(evaluated.best[chunk], scores.lists[chunk], examples, run_.config.top_k);
    }
  }
  scores.lists.clear();
}

// ---- Questions ---------------------------------------------------------------------------------

bool ShardRounds::has_result(RoundIndex round, ShardId shard) const {
  return works_.contains({round, shard});
}

bool ShardRounds::is_being_stored(RoundIndex round, ShardId shard) const {
  const auto work = works_.find({round, shard});
  return work != works_.end() && work->second.is_complete && !work->second.is_stored;
}

bool ShardRounds::owes_scores(RoundIndex checkpoint, ShardId shard) const {
  const bool is_due = run_.config.test_points > 0 && evaluated_ < checkpoint &&
                      run_.plan.evaluates_at(checkpoint, run_.config.evaluate_every_epochs);
  if (!is_due) return false;
  const Claim* const claim = find({checkpoint - 1, shard, true});
  return claim == nullptr || !claim->is_complete;
}

bool ShardRounds::has_settled(RoundIndex round) const {
  const auto settled = settled_shards_.find(round);
  return settled != settled_shards_.end() && settled->second == run_.map.output_shards();
}

std::uint32_t ShardRounds::count_results(RoundIndex round) const {
  const auto begin = works_.lower_bound({round, ShardId{0}});
  const auto end = works_.lower_bound({round + 1, ShardId{0}});
  return static_cast<std::uint32_t>(std::distance(begin, end));
}

std::vector<ShardId> ShardRounds::missing(RoundIndex round) const {
  std::vector<ShardId> missing;
  for (std::uint32_t s = 0; s < settled_.size(); ++s) {
    if (settled_[s] <= round) missing.push_back(ShardId{s});
  }
  return missing;
}

RoundSums ShardRounds::sums(RoundIndex round) const {
  RoundSums sums;
  RoundSums first;
  for (std::uint32_t s = 0; s < run_.map.output_shards(); ++s) {
    const Work& work = works_.at({round, ShardId{s}});
    add(work.first, first);
    add(work.first, sums);
    add(work.rest, sums);
  }
  const BatchIndex begin = run_.plan.round_begin(round);
  for (BatchIndex batch = begin; batch < run_.plan.round_end(round); ++batch) {
    sums.examples += run_.plan.examples_in(batch);
  }
  sums.first_batch_loss = to_nats(first.loss) / static_cast<double>(run_.plan.examples_in(begin));
  return sums;
}

bool ShardRounds::audit_after_all(RoundIndex round) {
  bool is_any = false;
  for (auto& [key, work] : works_) {
    const auto& [at, shard] = key;
    if (at > round || !work.is_excused) continue;
    is_any = true;
    work.is_excused = false;
    lot_.draw(work.who.identity, at);
    file({at, shard, false}, work);
    for (RoundIndex& next = settled_[raw(shard)]; next > at; --next) --settled_shards_[next - 1];
  }
  return is_any;
}

Receipt ShardRounds::receipt_of(ShardId shard, const Work& work) const {
  const WorkVerdict verdict = work.is_confirmed ? WorkVerdict::kConfirmed
                              : work.is_trusted ? WorkVerdict::kTrusted
                                                : WorkVerdict::kUnaudited;
  return {shard, {}, work.who.identity, work.who.name, work.auditor, work.auditor_name, verdict};
}

Receipts ShardRounds::fold(RoundIndex round) {
  Receipts receipts;
  std::map<KeyId, bool> is_confirmed;  // of strangers: all that they did in the round
  for (std::uint32_t s = 0; s < run_.map.output_shards(); ++s) {
    const auto work = works_.find({round, ShardId{s}});
    receipts.shards.push_back(receipt_of(ShardId{s}, work->second));
    if (work->second.is_stranger) {
      bool& all = is_confirmed.try_emplace(work->second.who.identity, true).first->second;
      all = all && work->second.is_confirmed;
    }
    works_.erase(work);
  }
  for (const auto& [key, all] : is_confirmed) {
    if (all) {
      lot_.confirmed(key);
    } else {
      receipts.unaudited.push_back(key);
    }
  }
  settled_shards_.erase(round);
  checkpoint_ = round + 1;
  lot_.forget_before(checkpoint_);
  return receipts;
}

std::optional<std::vector<std::vector<ScoredNeuron>>> ShardRounds::take_scores(
    RoundIndex checkpoint) {
  const auto evaluated = scores_.find(checkpoint);
  if (evaluated == scores_.end() || evaluated->second.merged < run_.map.output_shards()) {
    return std::nullopt;
  }
  auto best = std::move(evaluated->second.best);
  scores_.erase(evaluated);
  evaluated_ = checkpoint;
  return best;
}

}  // namespace gleaner
