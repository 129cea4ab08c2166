// Finds out what the run waits for, and for whom.
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "common/counted.hpp"
#include "common/limits.hpp"
#include "master/core/view/run_view.hpp"

namespace gleaner {
namespace {

// A run that stands still for longer says what it waits for.
constexpr Millis kStandstill{2'000};

}  // namespace

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
  return !wait.is_step || outbox_.now() - wait.since >= kStandstill;
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
