#include "master/core/audits/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/limits.hpp"
#include "master/core/session.hpp"

namespace gleaner {
namespace {

// Batches of an exercise.
constexpr BatchIndex kBatches = 4;
// Trials at a time: in all, and by one invite.
constexpr std::size_t kTrialsMax = 16;
constexpr std::ptrdiff_t kTrialsPerInvite = 4;
// False answers after which the exercise is replaced.
constexpr std::uint32_t kFailuresMax = 2;

}  // namespace

// ---- The exercise ------------------------------------------------------------------------------

ShardId Trials::shard_of(RoundIndex round) const {
  return ShardId{static_cast<std::uint32_t>(round % run_.map.output_shards())};
}

BatchIndex Trials::end_of(RoundIndex round) const {
  const BatchIndex begin = run_.plan.round_begin(round);
  const BatchIndex length = run_.plan.round_end(round) - begin;
  const double cells = static_cast<double>(run_.model.batch_examples) * run_.model.hidden;
  const auto fitting = static_cast<BatchIndex>(
      std::clamp(kUnitCellsMax / std::max(cells, 1.0), 1.0, static_cast<double>(kBatches)));
  // Leaves out the round's last batch if it can, so that no commit follows.
  return begin + std::clamp<BatchIndex>(length - 1, 1, fitting);
}

void Trials::note(const UnitResult& result) {
  for (const BatchResult& batch : result.batches) {
    const RoundIndex round = run_.plan.round_of(batch.batch);
    if (batch.batch >= end_of(round)) continue;
    for (const ShardOutcome& outcome : batch.shards) {
      if (outcome.shard != shard_of(round)) continue;
      const auto [known, is_new] = answers_.try_emplace(batch.batch, outcome);
      if (!is_new && known->second != outcome) known->second.reset();
    }
  }
}

void Trials::begin_draft(RoundIndex round) {
  const ShardId shard = shard_of(round);
  draft_ = Draft{round, shard, {}, placement_.reads_of(shard, round)};
  read_on();
}

// One chunk at a time: nobody waits for the exercise, and others read from the store too.
void Trials::read_on() {
  if (draft_->chunks.size() == draft_->reads.size()) return;
  outbox_.push(StorageTask(draft_->reads[draft_->chunks.size()]));
}

void Trials::on(ChunkRead& event, bool is_folding) {
  const bool is_awaited = draft_ && event.lease.shard == draft_->shard &&
                          raw(event.lease.epoch) == draft_->round &&
                          event.chunk == draft_->chunks.size();
  if (!is_awaited) return;
  draft_->chunks.push_back(std::move(event.rows));
  if (is_folding && draft_->chunks.size() < draft_->reads.size()) return draft_.reset();
  read_on();
}

std::optional<Trials::Exercise> Trials::finish(const Draft& draft) const {
  Exercise made;
  made.round = draft.round;
  made.shard = draft.shard;
  if (draft.chunks.size() != draft.reads.size()) return std::nullopt;
  made.chunks = draft.chunks;
  const BatchIndex end = end_of(draft.round);
  for (BatchIndex batch = run_.plan.round_begin(draft.round); batch < end; ++batch) {
    const auto answer = answers_.find(batch);
    if (answer == answers_.end() || !answer->second) return std::nullopt;
    made.answers.push_back(*answer->second);
    made.batches.push_back({batch, pipeline_.at(batch).packed,
                            pipeline_.positives_in(batch, {{draft.shard, LeaseEpoch{}}}),
                            run_.plan.rates(batch).output});
    made.examples += pipeline_.at(batch).examples;
  }
  return made;
}

void Trials::folded(RoundIndex round, const Receipts& receipts) {
  if (draft_ && draft_->round == round) {
    const bool is_known = receipts.shards.at(raw(draft_->shard)).verdict != WorkVerdict::kUnaudited;
    std::optional<Exercise> made = is_known ? finish(*draft_) : std::nullopt;
    draft_.reset();
    // Volunteers on trial finish the exercise that they began.
    if (made && trials_.empty()) {
      exercise_ = std::move(made);
      sessions_.set_tries_newcomers(true);
    }
  }
  answers_.erase(answers_.begin(), answers_.lower_bound(run_.plan.round_end(round)));
  std::set<KeyId> confirmed;
  for (const Receipt& receipt : receipts.shards) {
    if (receipt.verdict == WorkVerdict::kConfirmed)
      confirmed.insert({receipt.holder, receipt.auditor});
  }
  std::erase_if(newcomers_, [&](SessionId id) {
    SessionState& session = sessions_.at(id);
    if (session.is_on_trial || !confirmed.contains(session.standing.identity)) return false;
    prove(session);
    return true;
  });
}

// ---- Newcomers ---------------------------------------------------------------------------------

void Trials::came(SessionId id) {
  const SessionState& session = sessions_.at(id);
  if (!sessions_.is_audited(session)) return;
  has_strangers_ = true;
  if (!session.is_proven) newcomers_.insert(id);
}

void Trials::session_gone(SessionId id) {
  newcomers_.erase(id);
  trials_.erase(id);
}

void Trials::tick(RoundIndex checkpoint, bool is_folding) {
  const bool is_wanted =
      has_strangers_ && (!exercise_ || exercise_->failures >= kFailuresMax) && !draft_;
  if (is_wanted && !is_folding && checkpoint < run_.plan.round_count()) begin_draft(checkpoint);
  if (!exercise_ || exercise_->failures >= kFailuresMax) return;
  for (const SessionId id : newcomers_) {
    if (trials_.size() >= kTrialsMax) return;
    SessionState& session = sessions_.at(id);
    if (may_begin(id, session)) begin(id, session);
  }
}

bool Trials::may_begin(SessionId id, const SessionState& session) const {
  if (session.phase != SessionPhase::kActive || session.awaits_offer || session.is_paused() ||
      session.is_on_trial || sessions_.is_quarantined(session) || placement_.shards_at(id) > 0 ||
      audits_.is_auditor(id) || !session.units.empty()) {
    return false;
  }
  return kTrialsPerInvite > std::ranges::count_if(trials_, [&](const auto& entry) {
           return sessions_.at(entry.first).standing.invite == session.standing.invite;
         });
}

void Trials::begin(SessionId id, SessionState& session) {
  session.is_on_trial = true;
  session.no_shards = "it is new, and first does a unit again whose answer is known";
  LeaseGrant grant = placement_.make_trial_grant(exercise_->shard, exercise_->round);
  trials_[id] = {grant.lease,
                 placement_.begin_outstanding(Obligation::kLoad, grant.lease.shard, id, session)};
  outbox_.send(id, std::move(grant));
}

bool Trials::is_on_trial(SessionId id, const LeaseRef& lease) const {
  const auto found = trials_.find(id);
  return found != trials_.end() && found->second.lease == lease;
}

Result<void> Trials::receive(SessionId id, const ChunkRequest& request) {
  Trial& trial = trials_.at(id);
  const std::size_t chunks = exercise_->chunks.size();
  if (trial.is_ready || request.chunk >= chunks || trial.chunks_asked >= chunks) {
    return protocol_error(
        "chunk {} of shard {} cannot be requested now (it has {} chunks, and each "
        "is requested once)",
        request.chunk, raw(request.lease.shard), chunks);
  }
  ++trial.chunks_asked;
  outbox_.send(id, ShardChunk{request.lease, request.chunk, exercise_->chunks[request.chunk]});
  return {};
}

Result<void> Trials::receive(SessionId id, const ShardReady& ready) {
  Trial& trial = trials_.at(id);
  if (trial.is_ready) return protocol_error("shard {} was ready before", raw(ready.lease.shard));
  trial.is_ready = true;
  return {};
}

std::optional<OutstandingWork> Trials::outstanding(SessionId id) const {
  const auto found = trials_.find(id);
  if (found == trials_.end() || found->second.is_ready) return std::nullopt;
  return found->second.outstanding;
}

std::vector<std::pair<SessionId, UnitInFlight>> Trials::take_units() {
  std::vector<std::pair<SessionId, UnitInFlight>> units;
  for (auto& [id, trial] : trials_) {
    if (!trial.is_ready || std::exchange(trial.is_sent, true)) continue;
    UnitInFlight unit;
    unit.leases = {trial.lease};
    unit.first = exercise_->batches.front().batch;
    unit.batches = static_cast<std::uint32_t>(exercise_->batches.size());
    unit.wants_gradient = false;
    unit.examples = exercise_->examples;
    unit.is_trial = true;
    units.emplace_back(id, std::move(unit));
  }
  return units;
}

void Trials::answered(SessionId id, SessionState& session, const UnitResult& result) {
  const auto trial = trials_.find(id);
  outbox_.send(id, Revoke{trial->second.lease});
  trials_.erase(trial);
  session.is_on_trial = false;
  const bool is_right =
      std::ranges::equal(result.batches, exercise_->answers, {},
                         [](const BatchResult& batch) { return batch.shards.front(); });
  if (is_right) {
    exercise_->failures = 0;
    newcomers_.erase(id);
    prove(session);
    return;
  }
  ++exercise_->failures;
  ++sessions_.account(session).faults;
  sessions_.quarantine(session);
  session.no_shards = "its answer to a unit whose answer is known was another one";
  outbox_.log(LogLevel::kWarning, "trial_failed",
              fmt::format("{} gets no shards: {}", session.name(), session.no_shards));
}

void Trials::prove(SessionState& session) {
  sessions_.prove(session);
  placement_.newcomer_came();
}

}  // namespace gleaner
