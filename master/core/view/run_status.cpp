// How the run stands, in full, for a tool that asks; nothing here changes it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/limits.hpp"
#include "common/time.hpp"
#include "master/core/view/run_view.hpp"
#include "schema/versions.hpp"

namespace gleaner {

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
  const CoreSnapshot now = snapshot();
  RunStatus view;
  view.build = kBuildVersion;
  view.life = raw(life_number_);
  view.stage = now.stage;
  view.round = now.round;
  view.rounds = now.rounds;
  view.batch = now.batch;
  view.batches = now.batches;
  view.epoch = now.epoch;
  view.epochs = now.epochs;
  view.staleness = now.staleness;
  view.loss = static_cast<float>(now.loss);
  view.active = static_cast<float>(now.active);
  view.precision_at_1 = static_cast<float>(now.last_evaluation.precision.at_1());
  const Wait wait = this->wait();
  view.wait_owner = wait.owner;
  view.is_held_up = is_held_up(wait);
  view.waits_for = wait.what;
  view.waits_us = wait.owner == WaitOwner::kNobody ? 0 : age_us(wait.since);
  view.volunteers_here = static_cast<std::uint32_t>(now.volunteers.size());

  // Everyone who holds a shard, and of the others as many as there is room for.
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
  return view;
}

}  // namespace gleaner
