#include "master/core/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/text.hpp"

namespace gleaner {
Placement::Placement(const RunSetup& run, Outbox& outbox, Sessions& sessions,
                     const Pipeline& pipeline, std::optional<InputStream>& input,
                     const ResumePoint& resume)
    : run_(run),
      outbox_(outbox),
      sessions_(sessions),
      pipeline_(pipeline),
      input_(input),
      epochs_(resume.first_epoch),
      leases_(run.config.lends_input ? run.map.shard_count() : run.map.output_shards(),
              resume.checkpoint, epochs_),
      shadows_(run.map.output_shards(), resume.checkpoint, epochs_),
      expects_rejoin_(resume.checkpoint > 0) {}

// ---- Questions ---------------------------------------------------------------------------------

std::uint32_t Placement::shards_in(Layer layer) const {
  const std::uint32_t output = run_.map.output_shards();
  return layer == Layer::kOutput ? output : leases_.size() - output;
}

std::vector<ShardId> Placement::held_by(SessionId holder, Layer layer) const {
  std::vector<ShardId> held = leases_.held_by(holder);
  std::erase_if(held, [&](ShardId shard) { return layer_of(shard) != layer; });
  return held;
}

std::uint32_t Placement::count_held_by(SessionId holder, Layer layer) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      leases_.shards_of(holder), [&](ShardId shard) { return layer_of(shard) == layer; }));
}

std::vector<ShardId> Placement::ready_at(SessionId holder, Layer layer) const {
  std::vector<ShardId> held = held_by(holder, layer);
  std::erase_if(held, [&](ShardId s) { return leases_.at(s).state != LeaseState::kReady; });
  return held;
}

bool Placement::owes(SessionId id, const SessionState& session) const {
  if (!session.units.empty() || session.awaits_offer) return true;
  for (const LeaseTable* table : {&leases_, &shadows_}) {
    for (const ShardId shard : table->shards_of(id)) {
      const ShardLease& lease = table->at(shard);
      if (lease.state != LeaseState::kReady) return true;
      if (lease.next_batch >= run_.plan.round_end(lease.next_commit)) return true;  // a commit
    }
  }
  return false;
}

LeaseTable* Placement::table_of(const LeaseRef& lease, SessionId id) {
  if (leases_.find(lease, id) != nullptr) return &leases_;
  return shadows_.find(lease, id) != nullptr ? &shadows_ : nullptr;
}

// ---- Shadows -----------------------------------------------------------------------------------

bool Placement::has_room_for_shadows(SessionId id, const SessionState& session,
                                     std::size_t shadows) const {
  return bytes_at(id) + shadows * run_.config.shard_bytes <= session.hello.memory_bytes;
}

void Placement::lend(ShardId shard, SessionId id) {
  outbox_.send(id, grant(leases_, shard, id));
}

void Placement::lend_shadow(ShardId shard, SessionId auditor, RoundIndex base_round) {
  shadows_.at(shard).committed = base_round;
  outbox_.send(auditor, grant(shadows_, shard, auditor));
}

std::uint32_t Placement::room_to_take_over(SessionId id) const {
  const SessionState& session = sessions_.at(id);
  if (session.phase != SessionPhase::kActive || session.is_paused() || session.is_referee() ||
      sessions_.is_quarantined(session)) {
    return 0;
  }
  if (!sessions_.is_audited(session)) return shards_in(Layer::kOutput);
  const std::uint32_t held = count_held_by(id, Layer::kOutput);
  return limit(session) - std::min(limit(session), held);
}

bool Placement::can_take_over(ShardId shard) const {
  const ShardLease& lease = leases_.at(shard);
  const ShardLease& shadow = shadows_.at(shard);
  // The parts of a commit that the holder has sent as an auditor are not kept.
  return shadow.epoch > lease.epoch && shadow.parts_arrived == 0 &&
         shadow.next_commit <= lease.committed;
}

bool Placement::is_on_standby(ShardId shard) const {
  return layer_of(shard) == Layer::kOutput && shadows_.at(shard).is_standby;
}

void Placement::take_over(ShardId shard) {
  ShardLease& shadow = shadows_.at(shard);
  leases_.take_over(shard, shadow, outbox_.now());
  shadows_.release(shard, outbox_.now());
}

// ---- Lending -----------------------------------------------------------------------------------

void Placement::update() {
  const bool waits = waits_for_rejoin();
  if (run_.map.is_wide()) return;  // the bag lends
  if (!waits && (std::exchange(has_news_, false) || run_.config.looks_at_all)) {
    lend_free_shards();
  }
  if (has_newcomer_ || unbalanced_rounds_ >= run_.config.unbalanced_rounds) rebalance();
}

bool Placement::waits_for_rejoin() {
  if (expects_rejoin_) {
    expects_rejoin_ = false;
    rejoin_until_ = outbox_.now() + run_.config.rejoin_grace;
  }
  if (rejoin_until_ &&
      (outbox_.now() >= *rejoin_until_ || leases_.in_state(LeaseState::kFree).empty())) {
    rejoin_until_.reset();
    look_again();
  }
  return rejoin_until_.has_value();
}

std::uint32_t Placement::rows_per_chunk(ShardId shard) const {
  // About as many bytes as a chunk of an output shard has.
  return run_.config.rows_per_chunk * run_.map.row_width(ShardId{0}) / run_.map.row_width(shard);
}

std::uint32_t Placement::base_chunks(ShardId shard, RoundIndex base_round) const {
  if (base_round == 0 && !begins_with_rows(run_.model)) return 0;
  const std::uint32_t rows = rows_per_chunk(shard);
  return (run_.map.row_count(shard) + rows - 1) / rows;
}

bool Placement::may_be_lent(ShardId shard) const {
  const ShardLease& free = leases_.at(shard);
  // A hand-over continues from a commit; the commit must be stored before it can be fetched.
  if (free.handed_over && free.handed_over->base_round > free.committed) return false;
  return !is_on_standby(shard);
}

void Placement::lend_free_shards() {
  const std::set<ShardId> all_free = leases_.in_state(LeaseState::kFree);
  // Input shards come last.
  std::optional<Layer> current;
  std::vector<Holder> candidates;
  std::optional<Receivers> receivers;
  for (const ShardId shard : all_free) {
    if (!may_be_lent(shard)) continue;
    const Layer layer = layer_of(shard);
    if (layer != current) {
      current = layer;
      candidates = holders(layer);
      receivers.emplace(candidates, shards_in(layer));
    }
    // One holder cannot hold a shard twice.
    const bool is_shadowed =
        layer == Layer::kOutput && shadows_.at(shard).state != LeaseState::kFree;
    const std::optional<std::size_t> receiver =
        receivers->take(is_shadowed ? std::optional(shadows_.at(shard).holder) : std::nullopt);
    if (!receiver) continue;
    const ShardLease& free = leases_.at(shard);
    const SessionId id = candidates[*receiver].session;
    // An auditor repeats whole rounds, so that an audited holder must begin at a round's beginning.
    if (free.handed_over &&
        (free.handed_over->base_round < free.committed || sessions_.is_audited(sessions_.at(id)))) {
      leases_.at(shard).handed_over.reset();
    }
    lend(shard, id);
  }
}

LeaseGrant Placement::grant(LeaseTable& table, ShardId shard, SessionId id) {
  ShardLease& lease = table.at(shard);
  LeaseGrant grant;
  grant.next_batch =
      lease.handed_over ? lease.handed_over->next_batch : run_.plan.round_begin(lease.committed);
  grant.lease = table.grant(shard, id, lease.committed, grant.next_batch, outbox_.now());
  lease.outstanding = begin_outstanding(Obligation::kLoad, shard, id, sessions_.at(id));
  grant.base_round = lease.base_round;
  grant.base_chunks = base_chunks(shard, grant.base_round);
  grant.chunks =
      grant.base_chunks +
      (lease.handed_over ? static_cast<std::uint32_t>(lease.handed_over->parts.size()) : 0);
  lease.chunks = grant.chunks;
  if (layer_of(shard) == Layer::kInput) {
    begin_input(shard, sessions_.at(id), grant.next_batch);
    return grant;
  }
  grant.label_counts = label_counts(shard);
  return grant;
}

std::vector<std::uint32_t> Placement::label_counts(ShardId shard) const {
  const NeuronRange range = run_.map.neurons(shard);
  std::vector<std::uint32_t> counts;
  counts.reserve(range.size());
  for (std::uint32_t neuron = range.begin; neuron < range.end; ++neuron) {
    counts.push_back(run_.config.label_counts[run_.map.label_of_neuron(neuron)]);
  }
  return counts;
}

LeaseGrant Placement::make_trial_grant(ShardId shard, RoundIndex base_round) {
  LeaseGrant grant;
  grant.lease = {shard, epochs_.take()};
  grant.base_round = base_round;
  grant.next_batch = run_.plan.round_begin(base_round);
  grant.base_chunks = grant.chunks = base_chunks(shard, base_round);
  grant.label_counts = label_counts(shard);
  return grant;
}

ReadChunkTask Placement::read_of(SessionId session, const LeaseRef& lease, std::uint32_t chunk,
                                 RoundIndex base_round) const {
  const std::uint32_t per_chunk = rows_per_chunk(lease.shard);
  const std::uint32_t begin = chunk * per_chunk;
  return {session,    lease, chunk,
          base_round, begin, std::min(begin + per_chunk, run_.map.row_count(lease.shard))};
}

std::vector<ReadChunkTask> Placement::reads_of(ShardId shard, RoundIndex base_round) const {
  std::vector<ReadChunkTask> reads;
  for (std::uint32_t chunk = 0; chunk < base_chunks(shard, base_round); ++chunk) {
    reads.push_back(read_of(SessionId{}, {shard, LeaseEpoch{base_round}}, chunk, base_round));
  }
  return reads;
}

void Placement::begin_input(ShardId shard, SessionState& session, BatchIndex next_batch) {
  session.was_lent_input = true;
  input_->begin(shard, next_batch);
}

// ---- Those who go, and those who are slow ------------------------------------------------------

void Placement::forget_slowness(SessionId id, SessionState& session) const {
  if (session.speed <= 0 || outbox_.now() - session.last_result < run_.config.forget_slowness ||
      count_held_by(id, Layer::kOutput) > 0) {
    return;
  }
  session.speed = std::min(2 * session.speed, sessions_.fastest());
  session.last_result = outbox_.now();
}

void Placement::ask_back(SessionId id, SessionState& session, const std::string& reason) {
  for (const ShardId shard : leases_.held_by(id)) {
    ShardLease& lease = leases_.at(shard);
    const bool is_in_store = run_.map.is_wide() && lease.state == LeaseState::kReady &&
                             lease.committed >= run_.plan.round_of(lease.next_batch) &&
                             !session.has_unit_out(shard, ~BatchIndex{0});
    if (lease.state == LeaseState::kLoading || is_in_store) {
      outbox_.send(id, Revoke{{shard, lease.epoch}});
      lease.held_before = session.name();
      lease.moved_why = "it leaves: " + reason;
      leases_.release(shard, outbox_.now());
    } else if (lease.state == LeaseState::kReady) {
      lease.moved_why = "it leaves: " + reason;
      ask_for(shard, id, session);
    }
  }
  outbox_.log(LogLevel::kInfo, "leaving",
              fmt::format("{} is leaving ({}) and hands over {}", session.name(), reason,
                          counted(leases_.count_held_by(id), "shard")));
}

void Placement::ask_for(ShardId shard, SessionId holder, SessionState& session) {
  outbox_.send(holder, ReleaseRequest{{shard, leases_.at(shard).epoch}});
  leases_.set_state(shard, LeaseState::kReleasing, outbox_.now());
  leases_.at(shard).outstanding = begin_outstanding(Obligation::kHandOver, shard, holder, session);
}

std::uint32_t Placement::holder_gone(SessionId id, const std::string& name,
                                     const std::string& reason, RoundIndex checkpoint) {
  shadows_.revoke_all(id, outbox_.now());
  const std::vector<ShardId> freed = leases_.revoke_all(id, outbox_.now());
  for (const ShardId shard : freed) {
    leases_.at(shard).held_before = name;
    leases_.at(shard).moved_why = "it is gone: " + reason;
  }
  if (freed.empty()) return 0;
  // All holders vanished at once: the network failed, and they will be back.
  if (leases_.holders().empty()) expects_rejoin_ = checkpoint > 0;
  last_loss_ = outbox_.now();
  return static_cast<std::uint32_t>(freed.size());
}

}  // namespace gleaner
