#include "master/core/run_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/limits.hpp"
#include "common/text.hpp"
#include "common/time.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

// A run that stands still for longer tells what it waits for.
constexpr Millis kStandstill{2'000};
// A shard-round may take this time before the run counts as held up.
constexpr Millis kShardRound{30'000};

}  // namespace

RunProgress RunView::progress() const {
  RunProgress view;
  view.waiting_for = waiting_for();
  view.stage = life_.is_done && !life_.goes_on                ? RunStage::kDone
               : rounds_.is_stopping()                        ? RunStage::kStopping
               : evaluations_.current()                       ? RunStage::kEvaluating
               : !life_.is_started || sessions_.active() == 0 ? RunStage::kWaiting
                                                              : RunStage::kTraining;
  view.round = rounds_.checkpoint();
  view.rounds = run_.plan.round_count();
  view.batch = shard_rounds_ ? shard_rounds_->batches_done() : pipeline_.applied();
  view.batches = run_.plan.batch_count();
  view.epoch = run_.plan.epoch_of(view.batch);
  view.epochs = run_.model.epochs;
  view.staleness = run_.map.is_wide() ? 0 : run_.plan.lag(view.batch);
  view.examples = meter_.examples();
  view.unit_bytes_down = meter_.unit_bytes_down();
  view.unit_bytes_up = meter_.unit_bytes_up();
  view.loss = rounds_.last_record().loss;
  view.active = rounds_.last_record().active;
  view.precision = evaluations_.last().precision;
  for (const auto& [id, session] : sessions_.all()) {
    if (session.phase == SessionPhase::kIntroducing) continue;
    ++view.volunteers;
    if (session.standing.is_local) ++view.local;
  }
  return view;
}

RunNews RunView::news() const {
  const RunProgress now = progress();
  // Volunteers are not told of each other.
  const bool names_others = wait().owner == WaitOwner::kVolunteers && !now.waiting_for.empty();
  return {now.round,
          now.rounds,
          now.epoch,
          now.epochs,
          now.volunteers,
          static_cast<float>(now.precision.at_1()),
          names_others ? "the work of other volunteers" : now.waiting_for,
          {}};
}

void RunView::note_progress() {
  const auto& evaluation = evaluations_.current();
  const std::uint64_t steps =
      (shard_rounds_ ? shard_rounds_->steps() : pipeline_.applied()) + rounds_.checkpoint() +
      (evaluation ? evaluation->points_scored() : 0) + evaluations_.evaluated();
  if (steps == steps_ && last_step_ != Instant{}) return;
  steps_ = steps;
  last_step_ = outbox_.now();
}

// The status in full, for tools that ask. Changes nothing.

std::uint64_t RunView::age_us(Instant since) const {
  const Instant begin = std::max(since, life_.born);
  return begin >= outbox_.now() ? 0 : static_cast<std::uint64_t>((outbox_.now() - begin).count());
}

ShardEntry RunView::shard_status(const ShardLease& lease,
                                 const std::map<SessionId, std::uint32_t>& places) const {
  ShardEntry view;
  view.state = lease.state;
  if (lease.state != LeaseState::kFree) view.holder = places.at(lease.holder);
  view.since_us = age_us(lease.since);
  view.committed = lease.committed;
  view.next_batch = lease.next_batch;
  view.chunks = lease.chunks;
  view.chunks_sent = lease.chunks_sent;
  view.held_before = lease.held_before;
  view.moved_why = lease.moved_why;
  return view;
}

// "paused by its owner, for 40 s".
std::string RunView::paused_for(const SessionState& session) const {
  return session.pause_words() + ", for " +
         duration_words(age_us(session.paused_since) / 1'000'000);
}

VolunteerEntry RunView::volunteer_status(SessionId id, const SessionState& session) const {
  VolunteerEntry view;
  view.name = session.name();
  view.is_local = session.standing.is_local;
  if (!view.is_local) view.peer = session.peer;
  view.is_leaving = session.phase == SessionPhase::kLeaving;
  view.cores = session.hello.cores;
  view.speed = static_cast<float>(session.speed);
  view.round_trip_us = session.round_trip_us;
  view.here_us = age_us(session.opened);
  view.silent_us = age_us(session.last_heard);
  view.units_out = static_cast<std::uint32_t>(session.units.size());
  view.owes = placement_.owes(id, session);
  if (view.owes) view.owes_us = age_us(session.turn);
  view.no_shards = session.is_paused() ? paused_for(session) : session.no_shards;
  return view;
}

RunStatus RunView::status() const {
  RunStatus view;
  view.build = kBuildVersion;
  view.life = raw(life_number_);
  view.progress = progress();
  const Wait wait = this->wait();
  view.wait_owner = wait.owner;
  view.is_held_up = is_held_up(wait);
  view.waits_for = wait.what;
  view.waits_us = wait.owner == WaitOwner::kNobody ? 0 : age_us(wait.since);

  // All holders of shards, and other volunteers up to the limit.
  std::map<SessionId, std::uint32_t> places;
  for (const auto& [id, shards] : leases_.holders()) places.emplace(id, 0);
  for (const auto& [id, session] : sessions_.all()) {
    if (places.size() >= kOutputShardsMax) break;
    if (session.phase != SessionPhase::kIntroducing) places.emplace(id, 0);
  }
  for (auto& [id, place] : places) {
    place = static_cast<std::uint32_t>(view.volunteers.size());
    view.volunteers.push_back(volunteer_status(id, sessions_.at(id)));
  }
  for (std::uint32_t s = 0; s < leases_.size(); ++s) {
    view.shards.push_back(shard_status(leases_.at(ShardId{s}), places));
  }
  view.input_shards = placement_.shards_in(Layer::kInput);
  for (const Departure& gone : sessions_.gone()) {
    view.gone.push_back({gone.name, gone.reason, age_us(gone.at), gone.shards});
  }
  tell_lenders(view);
  return view;
}

void RunView::tell_lenders(RunStatus& view) const {
  view.name = run_.config.run;
  view.purpose = run_.config.purpose;
  view.features = run_.model.features;
  view.labels = run_.model.labels;
  view.hidden = run_.model.hidden;
  view.shard_bytes = run_.config.shard_bytes;
  view.holder_bytes = run_.config.holder_bytes;
  std::set<KeyId> local;
  for (const auto& [id, session] : sessions_.all()) {
    if (session.standing.is_local) local.insert(session.standing.identity);
  }
  for (const AccountRecord& account : sessions_.accounts()) {
    if (local.contains(account.identity)) continue;
    view.served_us += static_cast<std::uint64_t>(account.here.count());
    view.served_bytes_down += account.down.all;
    view.served_bytes_up += account.up.all;
  }
}

// Finds out what the run waits for, and for whom.

RunView::Wait RunView::wait() const {
  if (rounds_.store_full_since()) {
    return {WaitOwner::kStore, "disk space: " + rounds_.store_full_reason(),
            *rounds_.store_full_since()};
  }
  if (rounds_.checkpoint() == run_.plan.round_count() && !evaluations_.current()) return {};
  const std::uint32_t active = sessions_.active();
  if (active == 0) {
    return {WaitOwner::kOperator, "a volunteer: none is connected",
            sessions_.gone().empty() ? life_.born : sessions_.gone().back().at};
  }
  if (!life_.is_started) {
    return {WaitOwner::kOperator,
            fmt::format("volunteers: {} of the {} it starts with are here", active,
                        run_.config.min_volunteers),
            life_.born};
  }
  const bool waits_for_rejoin = placement_.rejoin_until().has_value();
  if (shard_rounds_ && !waits_for_rejoin) return next_shard_round();
  if (!leases_.in_state(LeaseState::kFree).empty()) return wait_for_holders();
  for (const LeaseState state : {LeaseState::kLoading, LeaseState::kReleasing}) {
    const std::set<ShardId>& moving = leases_.in_state(state);
    if (moving.empty()) continue;
    const ShardLease& first = leases_.at(*moving.begin());
    return {WaitOwner::kVolunteers,
            fmt::format("{} to {} {}", sessions_.name_of(first.holder),
                        state == LeaseState::kLoading ? "load" : "hand over",
                        counted(moving.size(), "shard")),
            first.since};
  }
  return next_step();
}

RunView::Wait RunView::wait_for_holders() const {
  const std::set<ShardId>& free = leases_.in_state(LeaseState::kFree);
  const std::optional<Instant>& until = placement_.rejoin_until();
  if (until && outbox_.now() < *until) {
    return {WaitOwner::kVolunteers,
            fmt::format("shards of volunteers that may come back, {:.1f} s more",
                        seconds_in(*until - outbox_.now())),
            *until - run_.config.rejoin_grace};
  }
  for (const ShardId shard : free) {
    if (!placement_.is_on_standby(shard)) continue;
    const ShardLease& shadow = placement_.shadows().at(shard);
    return {WaitOwner::kVolunteers,
            fmt::format("{} to do again what the last holder of shard {} did, and go on with it",
                        sessions_.name_of(shadow.holder), raw(shard)),
            leases_.at(shard).since};
  }
  for (const auto& [id, session] : sessions_.all()) {
    if (!session.awaits_offer) continue;
    return {WaitOwner::kVolunteers,
            fmt::format("{} to offer the {} it kept", session.name(),
                        counted(session.hello.kept_shards, "shard")),
            session.joined};
  }
  return {WaitOwner::kOperator,
          fmt::format("a volunteer with memory for {}", counted(free.size(), "more shard")),
          leases_.at(*free.begin()).since};
}

bool RunView::is_held_up(const Wait& wait) const {
  if (wait.owner == WaitOwner::kNobody) return false;
  return !wait.is_step || outbox_.now() - wait.since >= (shard_rounds_ ? kShardRound : kStandstill);
}

std::string RunView::waiting_for() const {
  const Wait wait = this->wait();
  if (!is_held_up(wait)) return "";
  if (!wait.is_step) return wait.what;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(outbox_.now() - wait.since);
  return fmt::format("{}, for {} s", wait.what, seconds.count());
}

std::string RunView::names_of_holders(const std::vector<ShardId>& shards) const {
  std::map<SessionId, std::uint32_t> holders;
  for (const ShardId shard : shards) ++holders[leases_.at(shard).holder];
  std::string names;
  for (const auto& [id, count] : holders) {
    if (!names.empty()) names += " and ";
    names += fmt::format("{} ({})", sessions_.name_of(id), counted(count, "shard"));
    if (names.size() > kSentenceBytesMax / 2) return names + " and others";
  }
  return names;
}

RunView::Wait RunView::step(WaitOwner owner, std::string what) const {
  return {owner, std::move(what), last_step_, true};
}

RunView::Wait RunView::next_shard_round() const {
  const RoundIndex round = rounds_.checkpoint();
  if (evaluations_.current()) return step(WaitOwner::kMaster, "the evaluation's figures");
  if (rounds_.is_folding()) {
    return step(WaitOwner::kStore, fmt::format("the store to fold round {}", round));
  }
  std::vector<ShardId> missing = shard_rounds_->missing(round);
  std::erase_if(missing,
                [&](ShardId shard) { return leases_.at(shard).state == LeaseState::kFree; });
  if (!missing.empty()) {
    return step(WaitOwner::kVolunteers,
                fmt::format("round {} of their shards from {}", round, names_of_holders(missing)));
  }
  if (!shard_rounds_->wanted().empty()) {
    return step(WaitOwner::kVolunteers, "somebody to do again what strangers have done");
  }
  return step(WaitOwner::kOperator, "a volunteer that can take a shard");
}

RunView::Wait RunView::next_step() const {
  if (const auto& evaluation = evaluations_.current()) {
    return step(WaitOwner::kVolunteers,
                fmt::format("the evaluation of {} test examples, {} done", evaluation->points(),
                            evaluation->points_scored()));
  }
  const BatchIndex batch = pipeline_.applied();
  if (batch < pipeline_.frontier()) {
    std::vector<ShardId> missing;
    for (std::uint32_t s = 0; s < run_.map.output_shards(); ++s) {
      if (!pipeline_.is_covered(batch, ShardId{s})) missing.push_back(ShardId{s});
    }
    if (!missing.empty()) {
      return step(WaitOwner::kVolunteers,
                  fmt::format("the results of batch {} from {}", batch, names_of_holders(missing)));
    }
    if (!pipeline_.at(batch).promised.empty()) {
      return step(WaitOwner::kVolunteers,
                  fmt::format("a relay to send its gradients of batch {}", batch));
    }
  } else if (const auto unknown = input_ ? input_->missing() : std::nullopt;
             unknown && !unknown->shards.empty()) {
    return step(WaitOwner::kVolunteers,
                fmt::format("the hidden units of batch {} from {}", unknown->index,
                            names_of_holders(unknown->shards)));
  } else if (rounds_.is_folding() || run_.plan.round_begin(rounds_.checkpoint()) < batch) {
    return next_step_of_round();
  }
  return step(WaitOwner::kMaster, fmt::format("the master's own work on batch {}", batch));
}

RunView::Wait RunView::next_step_of_round() const {
  const RoundIndex round = rounds_.checkpoint();
  if (rounds_.is_folding()) {
    return step(WaitOwner::kStore, fmt::format("the store to fold round {}", round));
  }
  std::vector<ShardId> missing;
  for (std::uint32_t s = 0; s < leases_.size(); ++s) {
    if (leases_.at(ShardId{s}).next_commit <= round) missing.push_back(ShardId{s});
  }
  if (missing.empty()) {
    if (std::string audit = audits_.waiting_for(round); !audit.empty()) {
      return step(WaitOwner::kVolunteers, std::move(audit));
    }
    return step(WaitOwner::kStore, fmt::format("the store to keep the commits of round {}", round));
  }
  return step(WaitOwner::kVolunteers,
              fmt::format("the commits of round {} from {}", round, names_of_holders(missing)));
}

}  // namespace gleaner
