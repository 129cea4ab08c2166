// The obligations of volunteers for their shards, and their deadlines.
#include <algorithm>

#include "master/core/placement.hpp"

namespace gleaner {
namespace {

// Bytes per second of the thinnest line that takes part: 1 Mbit/s, half of which units may take.
constexpr std::uint64_t kThinLine = 62'500;

}  // namespace

std::optional<Obligation> Placement::owed(const SessionState& session, ShardId shard,
                                          const ShardLease& lease) const {
  if (lease.state == LeaseState::kLoading) return Obligation::kLoad;
  if (lease.state == LeaseState::kReleasing) return Obligation::kHandOver;
  const BatchIndex end = run_.plan.round_end(lease.next_commit);
  if (lease.state != LeaseState::kReady || lease.next_batch < end) return std::nullopt;
  // Answers come before the commit to which they lead, and have their own deadline.
  if (session.has_unit_out(shard, end)) return std::nullopt;
  return Obligation::kCommit;
}

OutstandingWork Placement::begin_outstanding(Obligation what, ShardId shard, SessionId id,
                                             SessionState& session) const {
  const Instant now = outbox_.now();
  const Instant first = now + sessions_.time_for(what, session);
  const std::uint64_t shard_bytes =
      layer_of(shard) == Layer::kOutput ? run_.config.shard_bytes : run_.config.input_shard_bytes;
  const Millis bytes(shard_bytes * 1000 / kThinLine);
  // Transfers pass the volunteer's line one after the other, and there are at most as many as
  // shards.
  const Instant last = first + bytes * std::max(1u, shards_at(id));
  session.last_due = std::min(std::max(first, session.last_due) + bytes, last);
  return {what, now, session.last_due};
}

std::optional<OutstandingWork> Placement::first_outstanding(SessionId id, SessionState& session) {
  std::optional<OutstandingWork> first;
  const auto owes = [&](const OutstandingWork& outstanding) {
    if (!first || outstanding.due < first->due) first = outstanding;
  };
  const auto owes_since = [&](Obligation what, Instant since) {
    owes({what, since, since + sessions_.time_for(what, session)});
  };
  if (session.awaits_offer) owes_since(Obligation::kOffer, session.joined);
  if (!session.units.empty()) owes_since(Obligation::kUnit, session.turn);
  for (LeaseTable* const table : {&leases_, &shadows_}) {
    for (const ShardId shard : table->shards_of(id)) {
      ShardLease& lease = table->at(shard);
      const std::optional<Obligation> what = owed(session, shard, lease);
      if (!what) continue;
      if (!lease.outstanding) lease.outstanding = begin_outstanding(*what, shard, id, session);
      owes(*lease.outstanding);
    }
  }
  return first;
}

void Placement::note_outstanding_commits(SessionId id, SessionState& session,
                                         const std::vector<LeaseRef>& leases) {
  for (const LeaseRef& ref : leases) {
    LeaseTable* const table = table_of(ref, id);
    if (table == nullptr) continue;
    ShardLease& lease = table->at(ref.shard);
    const std::optional<Obligation> what = owed(session, ref.shard, lease);
    if (what && !lease.outstanding)
      lease.outstanding = begin_outstanding(*what, ref.shard, id, session);
  }
}

void Placement::restart_outstanding() {
  sessions_.restart_units();
  for (LeaseTable* const table : {&leases_, &shadows_}) {
    for (std::uint32_t s = 0; s < table->size(); ++s) table->at(ShardId{s}).outstanding.reset();
  }
}

}  // namespace gleaner
