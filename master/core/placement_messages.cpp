// Messages about shards. Nothing in a message is believed before it is checked.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/model/row_checks.hpp"
#include "common/text.hpp"
#include "master/core/placement.hpp"
#include "master/core/session.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kChunksInFlightMax = 16;

// Bytes per second of the thinnest line that takes part: 1 Mbit/s, half of which units may take.
constexpr std::uint64_t kThinLine = 62'500;

}  // namespace

Result<void> Placement::receive(SessionId id, SessionState& session, const ShardOffer& offer,
                                RoundIndex checkpoint, bool is_folding,
                                std::span<const ShardDigest> digests) {
  if (!session.awaits_offer ||
      (!offer.shards.empty() && raw(offer.shards.back().lease.shard) >= run_.map.shard_count())) {
    return protocol_error("an offer of shards that does not fit");
  }
  session.awaits_offer = false;
  // While a round is folded, the log may forget batches that the offered state needs. A referee
  // that held shards could not audit them. A quarantined stranger gets no shards.
  const bool is_quarantined = sessions_.is_audited(session) && sessions_.is_quarantined(session);
  const bool is_current = offer.checkpoint == checkpoint && !is_folding && !is_quarantined &&
                          session.phase == SessionPhase::kActive && !session.is_referee();
  std::vector<ShardId> accepted;
  std::vector<ShardId> different;
  for (const OfferedShard& offered : offer.shards) {
    const ShardId shard = offered.lease.shard;
    // A master that holds the input layer itself does not want input shards.
    const bool is_wanted = is_current && raw(shard) < leases_.size() &&
                           leases_.at(shard).state == LeaseState::kFree &&
                           (!run_.map.is_wide() || leases_.at(shard).committed == checkpoint);
    const bool is_same = raw(shard) < digests.size() && digests[raw(shard)] == offered.digest;
    if (is_wanted && is_same) {
      accepted.push_back(shard);
      continue;
    }
    if (is_wanted) different.push_back(shard);
    outbox_.send(id, Revoke{offered.lease});
  }
  for (const ShardId shard : accepted) {
    // The volunteer begins at the checkpoint, and computes later commits and a hand-over again.
    leases_.at(shard).handed_over.reset();
    LeaseGrant grant;
    grant.base_round = checkpoint;
    grant.next_batch = run_.plan.round_begin(checkpoint);
    grant.lease = leases_.grant(shard, id, grant.base_round, grant.next_batch, outbox_.now());
    leases_.at(shard).outstanding = begin_outstanding(Obligation::kLoad, shard, id, session);
    grant.is_held = true;
    if (layer_of(shard) == Layer::kInput) begin_input(shard, session, grant.next_batch);
    outbox_.send(id, std::move(grant));
  }
  if (accepted.empty()) has_newcomer_ = true;
  if (!accepted.empty()) {
    outbox_.log(LogLevel::kInfo, "rejoined",
                fmt::format("{} is back with {} as of checkpoint {}: nothing to download",
                            session.name(), counted(accepted.size(), "shard"), checkpoint));
  }
  if (!different.empty()) {
    ++sessions_.account(session).faults;
    outbox_.log(
        LogLevel::kWarning, "different_content",
        fmt::format("{} offers shard {}{} with a different content: loaded from the store "
                    "instead",
                    session.name(), raw(different.front()),
                    different.size() == 1 ? std::string()
                                          : fmt::format(" and {} more", different.size() - 1)));
  }
  return {};
}

Result<void> Placement::receive(SessionId id, SessionState& session, const ChunkRequest& request) {
  LeaseTable* const table = table_of(request.lease, id);
  if (table == nullptr) return {};  // revoked while the request was on its way
  ShardLease* const lease = &table->at(request.lease.shard);
  const std::uint32_t base_chunks = this->base_chunks(request.lease.shard, lease->base_round);
  const std::size_t chunks =
      base_chunks + (lease->handed_over ? lease->handed_over->parts.size() : 0);
  if (lease->state != LeaseState::kLoading || request.chunk >= chunks ||
      lease->chunks_asked >= chunks || awaited_chunks(id, session) >= kChunksInFlightMax ||
      session.chunks_in_flight.contains({request.lease.epoch, request.chunk})) {
    return protocol_error(
        "chunk {} of shard {} cannot be requested now (it has {} chunks; each is requested once, "
        "and {} at a time)",
        request.chunk, raw(request.lease.shard), chunks, kChunksInFlightMax);
  }
  ++lease->chunks_asked;
  if (request.chunk >= base_chunks) {
    lease->chunks_sent = std::min(lease->chunks_sent + 1, lease->chunks);
    outbox_.send(id, ShardChunk{request.lease, request.chunk,
                                lease->handed_over->parts[request.chunk - base_chunks]});
    return {};
  }
  session.chunks_waiting.push_back(request);
  read_waiting(id, session);
  return {};
}

std::size_t Placement::awaited_chunks(SessionId id, SessionState& session) const {
  std::set<LeaseEpoch> live;
  for (const LeaseTable* const table : {&leases_, &shadows_}) {
    for (const ShardId shard : table->shards_of(id)) live.insert(table->at(shard).epoch);
  }
  std::erase_if(session.chunks_waiting,
                [&](const ChunkRequest& request) { return !live.contains(request.lease.epoch); });
  return session.chunks_waiting.size() + static_cast<std::size_t>(std::ranges::count_if(
                                             session.chunks_in_flight, [&](const auto& read) {
                                               return live.contains(read.first);
                                             }));
}

void Placement::read_waiting(SessionId id, SessionState& session) {
  while (!session.chunks_waiting.empty() && session.chunks_in_flight.size() < kChunksInFlightMax) {
    const ChunkRequest request = session.chunks_waiting.front();
    session.chunks_waiting.pop_front();
    const LeaseTable* const table = table_of(request.lease, id);
    if (table == nullptr) continue;
    session.chunks_in_flight.insert({request.lease.epoch, request.chunk});
    const RoundIndex base_round = table->at(request.lease.shard).base_round;
    outbox_.push(StorageTask(read_of(id, request.lease, request.chunk, base_round)));
  }
}

Result<void> Placement::receive(SessionId id, const ShardReady& ready) {
  LeaseTable* const table = table_of(ready.lease, id);
  if (table == nullptr) return {};
  ShardLease* const lease = &table->at(ready.lease.shard);
  if (lease->state != LeaseState::kLoading) {
    return protocol_error("shard {} was ready before", raw(ready.lease.shard));
  }
  lease->handed_over.reset();
  loading_time_ = outbox_.now() - lease->since;
  table->set_state(ready.lease.shard, LeaseState::kReady, outbox_.now());
  return {};
}

Result<void> Placement::receive(SessionId id, SessionState& session, HandOver& part) {
  ShardLease* lease = leases_.find(part.lease, id);
  if (lease == nullptr) return {};
  const std::uint32_t arrived =
      lease->handed_over ? static_cast<std::uint32_t>(lease->handed_over->parts.size()) : 0;
  Result<void> fits =
      check_rows(run_.model, run_.map, part.lease.shard, part.rows, RowsOf::kHandOver);
  // The hand-over comes after everything else that the shard owes: results, and the commit of a
  // complete round.
  const bool is_due =
      lease->state == LeaseState::kReleasing && part.base_round == lease->next_commit &&
      part.next_batch == lease->next_batch &&
      part.next_batch < run_.plan.round_end(part.base_round) &&
      !session.has_unit_out(part.lease.shard, std::numeric_limits<BatchIndex>::max());
  if (fits.ok() &&
      (!is_due || part.part != arrived ||
       !follows(part, part.rows, lease->rows_from, run_.map.row_count(part.lease.shard)))) {
    fits = protocol_error("it does not fit the lease");
  }
  if (!fits) {
    return protocol_error("a hand-over of shard {}: {}", raw(part.lease.shard),
                          fits.error().message);
  }
  if (!lease->handed_over) {
    lease->handed_over = std::make_shared<HandedOver>();
    lease->handed_over->base_round = part.base_round;
    lease->handed_over->next_batch = part.next_batch;
  }
  lease->rows_from = part.rows.rows.empty() ? 0 : std::uint64_t{part.rows.rows.back()} + 1;
  lease->handed_over->parts.push_back(std::move(part.rows));
  if (part.part + 1 != part.parts) return {};
  lease->held_before = session.name();
  if (sessions_.is_audited(session)) {
    // Nobody could tell whether these rows are honest. A hand-over at the beginning of a round
    // carries no rows; within a round the next holder does the round again.
    lease->handed_over->parts.clear();
    if (part.next_batch != run_.plan.round_begin(part.base_round)) lease->handed_over.reset();
  }
  leases_.release(part.lease.shard, outbox_.now());
  return {};
}

void Placement::on(ChunkRead& event) {
  SessionState* const session = sessions_.find(event.session);
  if (session == nullptr) return;
  session->chunks_in_flight.erase({event.lease.epoch, event.chunk});
  read_waiting(event.session, *session);
  LeaseTable* const table = table_of(event.lease, event.session);
  if (table == nullptr) return;
  ShardLease* const lease = &table->at(event.lease.shard);
  lease->chunks_sent = std::min(lease->chunks_sent + 1, lease->chunks);
  outbox_.send(event.session, ShardChunk{event.lease, event.chunk, std::move(event.rows)});
}

// The obligations of volunteers for their shards, and their deadlines.
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
