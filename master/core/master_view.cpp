// What people are shown of the state; nothing here changes it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "common/counted.hpp"
#include "common/limits.hpp"
#include "master/core/master_core.hpp"

namespace gleaner {
namespace {

// A run that stands still for longer says what it waits for.
constexpr Millis kStandstill{2'000};

}  // namespace

RoundRecord MasterCore::round_record(RoundIndex round) const {
  RoundRecord record;
  record.round = round;
  record.batches = plan_.round_end(round);
  record.epoch = plan_.epochs_done(round + 1);
  record.volunteers = active_sessions();
  std::uint64_t examples = 0;
  std::int64_t loss = 0;
  std::uint64_t active = 0;
  double code_lengths = 0;
  for (BatchIndex batch = plan_.round_begin(round); batch < plan_.round_end(round); ++batch) {
    const BatchRecord& log = pipeline_.at(batch);
    examples += log.examples;
    loss += log.loss;
    active += log.active;
    code_lengths += log.code_length * log.examples;
  }
  const auto count = static_cast<double>(examples);
  record.loss = to_nats(loss) / count;
  record.active = static_cast<double>(active) / count;
  record.code_length = code_lengths / count;
  const double seconds = static_cast<double>((now_ - round_started_).count()) / 1e6;
  if (seconds > 0) record.examples_per_second = count / seconds;
  if (round_unit_examples_ > 0) {
    record.bytes_down =
        static_cast<double>(round_bytes_down_) / static_cast<double>(round_unit_examples_);
    record.bytes_up =
        static_cast<double>(round_bytes_up_) / static_cast<double>(round_unit_examples_);
  }
  return record;
}

MasterCore::Wait MasterCore::wait() const {
  if (store_full_since_) {
    return {WaitOwner::kStore, "disk space: " + store_full_reason_, *store_full_since_};
  }
  if (checkpoint_ == plan_.round_count() && !evaluation_) return {};
  const std::uint32_t active = active_sessions();
  if (active == 0) {
    return {WaitOwner::kOperator, "a volunteer: none is connected",
            gone_.empty() ? born_ : gone_.back().at};
  }
  if (!is_started_) {
    return {WaitOwner::kOperator,
            fmt::format("volunteers: {} of the {} it starts with are here", active,
                        config_.min_volunteers),
            born_};
  }
  const std::vector<ShardId> free = leases_.in_state(LeaseState::kFree);
  if (!free.empty() && rejoin_until_ && now_ < *rejoin_until_) {
    return {WaitOwner::kVolunteers,
            fmt::format("shards of volunteers that may come back, {:.1f} s more",
                        static_cast<double>((*rejoin_until_ - now_).count()) / 1e6),
            *rejoin_until_ - config_.rejoin_grace};
  }
  for (const auto& [id, session] : sessions_) {
    if (free.empty() || !session.awaits_offer) continue;
    return {WaitOwner::kVolunteers,
            fmt::format("{} to offer the {} it kept", session.name(),
                        counted(session.hello.kept_shards, "shard")),
            session.last_progress};
  }
  if (!free.empty()) {
    return {WaitOwner::kOperator,
            fmt::format("a volunteer with memory for {}", counted(free.size(), "more shard")),
            leases_.at(free.front()).since};
  }
  for (const LeaseState state : {LeaseState::kLoading, LeaseState::kReleasing}) {
    const std::vector<ShardId> moving = leases_.in_state(state);
    if (moving.empty()) continue;
    const ShardLease& first = leases_.at(moving.front());
    const auto holder = sessions_.find(first.holder);
    return {WaitOwner::kVolunteers,
            fmt::format("{} to {} {}", holder == sessions_.end() ? "?" : holder->second.name(),
                        state == LeaseState::kLoading ? "load" : "hand over",
                        counted(moving.size(), "shard")),
            first.since};
  }
  return next_step();
}

bool MasterCore::is_held_up(const Wait& wait) const {
  if (wait.owner == WaitOwner::kNobody) return false;
  return !wait.is_step || now_ - wait.since >= kStandstill;
}

std::string MasterCore::waiting_for() const {
  const Wait wait = this->wait();
  if (!is_held_up(wait)) return "";
  if (!wait.is_step) return wait.what;
  return fmt::format("{}, for {} s", wait.what,
                     std::chrono::duration_cast<std::chrono::seconds>(now_ - wait.since).count());
}

std::string MasterCore::names_of_holders(const std::vector<ShardId>& shards) const {
  std::map<SessionId, std::uint32_t> holders;
  for (const ShardId shard : shards) ++holders[leases_.at(shard).holder];
  std::string names;
  for (const auto& [id, count] : holders) {
    const auto session = sessions_.find(id);
    if (!names.empty()) names += " and ";
    names += fmt::format("{} ({})", session == sessions_.end() ? "?" : session->second.name(),
                         counted(count, "shard"));
    if (names.size() > kSentenceBytesMax / 2) return names + " and others";
  }
  return names;
}

MasterCore::Wait MasterCore::next_step() const {
  const auto step = [this](WaitOwner owner, std::string what) {
    return Wait{owner, std::move(what), last_step_, true};
  };
  if (evaluation_) {
    return step(WaitOwner::kVolunteers,
                fmt::format("the evaluation of {} held-out points, {} done", evaluation_->points(),
                            evaluation_->points_scored()));
  }
  const BatchIndex batch = pipeline_.applied();
  std::vector<ShardId> missing;
  if (batch < pipeline_.frontier()) {
    for (std::uint32_t s = 0; s < map_.output_shards(); ++s) {
      if (!pipeline_.is_covered(batch, ShardId{s})) missing.push_back(ShardId{s});
    }
    if (!missing.empty()) {
      return step(WaitOwner::kVolunteers,
                  fmt::format("the results of batch {} from {}", batch, names_of_holders(missing)));
    }
  } else if (const auto unknown = input_ ? input_->missing() : std::nullopt;
             unknown && !unknown->shards.empty()) {
    return step(WaitOwner::kVolunteers,
                fmt::format("the hidden units of batch {} from {}", unknown->index,
                            names_of_holders(unknown->shards)));
  } else if (is_folding_) {
    return step(WaitOwner::kStore, fmt::format("the store to fold round {}", checkpoint_));
  } else if (plan_.round_begin(checkpoint_) < batch) {
    for (std::uint32_t s = 0; s < leases_.size(); ++s) {
      if (leases_.at(ShardId{s}).next_commit <= checkpoint_) missing.push_back(ShardId{s});
    }
    if (missing.empty()) {
      return step(WaitOwner::kStore,
                  fmt::format("the store to keep the commits of round {}", checkpoint_));
    }
    return step(WaitOwner::kVolunteers, fmt::format("the commits of round {} from {}", checkpoint_,
                                                    names_of_holders(missing)));
  }
  return step(WaitOwner::kMaster, fmt::format("the master's own work on batch {}", batch));
}

void MasterCore::note_progress() {
  const std::uint64_t steps = pipeline_.applied() + checkpoint_ +
                              (evaluation_ ? evaluation_->points_scored() : 0) +
                              evaluated_checkpoint_;
  if (steps == steps_ && last_step_ != Instant{}) return;
  steps_ = steps;
  last_step_ = now_;
}

CoreSnapshot MasterCore::snapshot() const {
  CoreSnapshot view;
  using Phase = CoreSnapshot::Phase;
  view.waiting_for = waiting_for();
  view.phase = is_done_                                 ? Phase::kDone
               : stop_at_                               ? Phase::kStopping
               : evaluation_                            ? Phase::kEvaluating
               : !is_started_ || active_sessions() == 0 ? Phase::kWaiting
                                                        : Phase::kTraining;
  view.round = checkpoint_;
  view.rounds = plan_.round_count();
  view.batch = pipeline_.applied();
  view.batches = plan_.batch_count();
  view.epoch =
      std::min(model_.epochs, static_cast<std::uint32_t>(view.batch / plan_.batches_per_epoch()));
  view.epochs = model_.epochs;
  view.staleness = plan_.lag(view.batch);
  view.examples = examples_;
  view.unit_bytes_down = unit_bytes_down_;
  view.unit_bytes_up = unit_bytes_up_;
  view.loss = last_record_.loss;
  view.active = last_record_.active;
  view.last_evaluation = last_evaluation_;
  view.shards = leases_.size();
  view.shards_ready = static_cast<std::uint32_t>(leases_.in_state(LeaseState::kReady).size());
  for (const auto& [id, session] : sessions_) {
    if (session.phase == SessionPhase::kIntroducing) continue;
    view.volunteers.push_back({session.name(), session.peer, session.hello.identity_high == 0,
                               session.hello.cores,
                               static_cast<std::uint32_t>(leases_.held_by(id).size()),
                               session.speed, session.round_trip_us});
  }
  return view;
}

}  // namespace gleaner
