#include "common/train/leased_shards.hpp"

#include <algorithm>

#include "common/model/row_checks.hpp"

namespace gleaner {
namespace {

// Chunks hold about kRowsPerChunkBytes of rows. No correct master promises more than twice as many
// chunks as the shard has rows.
std::uint64_t chunks_max(std::uint64_t rows) {
  return 2 * rows + 2;
}

Error refuse_lease(const LeaseRef& lease, const std::string& what) {
  return {ErrorCode::kProtocol,
          fmt::format("shard {} (lease {}): {}", raw(lease.shard), raw(lease.epoch), what)};
}

Error stale_lease(const LeaseRef& lease) {
  return {ErrorCode::kStaleLease,
          fmt::format("shard {} is not held under lease {}", raw(lease.shard), raw(lease.epoch))};
}

}  // namespace

Result<void> check_grant(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map,
                         const RunPlan& plan) {
  const LeaseRef lease = grant.lease;
  if (raw(lease.shard) >= map.shard_count()) {
    return refuse_lease(lease, fmt::format("there are only {} shards", map.shard_count()));
  }
  const std::uint32_t rows = map.row_count(lease.shard);
  const std::uint32_t labels = map.is_output(lease.shard) ? map.neurons(lease.shard).size() : 0;
  if (grant.label_counts.size() != labels) {
    return refuse_lease(lease, fmt::format("the grant has {} label counts for {} neurons",
                                           grant.label_counts.size(), labels));
  }
  for (const std::uint32_t count : grant.label_counts) {
    if (count > config.points) {
      return refuse_lease(lease, fmt::format("a label count of {} exceeds the {} training examples",
                                             count, config.points));
    }
  }
  if (grant.base_round > plan.round_count()) {
    return refuse_lease(lease, fmt::format("checkpoint {} is beyond the run's {} rounds",
                                           grant.base_round, plan.round_count()));
  }
  const BatchIndex begin = plan.round_begin(grant.base_round);
  const bool is_last = grant.base_round == plan.round_count();
  if (grant.next_batch < begin ||
      grant.next_batch >= (is_last ? begin + 1 : plan.round_end(grant.base_round))) {
    return refuse_lease(lease, fmt::format("batch {} does not lie in the round after checkpoint {}",
                                           grant.next_batch, grant.base_round));
  }
  if (grant.base_chunks > grant.chunks || grant.chunks > chunks_max(rows)) {
    return refuse_lease(lease, fmt::format("{} base chunks of {} chunks for {} rows cannot be",
                                           grant.base_chunks, grant.chunks, rows));
  }
  if (grant.next_batch > begin && grant.base_chunks == grant.chunks) {
    return refuse_lease(lease, "the grant stands within a round but has no handed-over chunk");
  }
  if (is_wide(config) && (grant.next_batch > begin || grant.base_chunks < grant.chunks)) {
    return refuse_lease(lease, "a wide shard is lent within a round");
  }
  return {};
}

ChunkLedger::ChunkLedger(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map)
    : config_(config),
      map_(map),
      lease_(grant.lease),
      base_chunks_(grant.base_chunks),
      has_chunk_(grant.chunks, 0),
      has_base_(map.row_count(grant.lease.shard), 0),
      has_overlay_(has_base_.size(), 0) {}

Result<void> ChunkLedger::accept(const ShardChunk& chunk) {
  if (chunk.chunk >= has_chunk_.size()) {
    return refuse_lease(
        lease_, fmt::format("chunk {} of {} does not exist", chunk.chunk, has_chunk_.size()));
  }
  if (has_chunk_[chunk.chunk] != 0) {
    return refuse_lease(lease_, fmt::format("chunk {} came twice", chunk.chunk));
  }
  std::vector<std::uint8_t>& seen = is_base(chunk.chunk) ? has_base_ : has_overlay_;
  const RowsOf source = is_base(chunk.chunk) ? RowsOf::kCheckpoint : RowsOf::kHandOver;
  if (auto checked = check_rows(config_, map_, lease_.shard, chunk.rows, source); !checked) {
    return refuse_lease(lease_, fmt::format("chunk {}: {}", chunk.chunk, checked.error().message));
  }
  for (const std::uint32_t row : chunk.rows.rows) {
    if (seen[row] == 0) continue;
    return refuse_lease(lease_,
                        fmt::format("chunk {}: row {} came in an earlier chunk", chunk.chunk, row));
  }
  has_chunk_[chunk.chunk] = 1;
  for (const std::uint32_t row : chunk.rows.rows) seen[row] = 1;
  return {};
}

Result<void> ChunkLedger::check_complete() const {
  const auto missing = std::find(has_chunk_.begin(), has_chunk_.end(), std::uint8_t{0});
  if (missing == has_chunk_.end()) return {};
  return refuse_lease(lease_,
                      fmt::format("chunk {} has not come yet", missing - has_chunk_.begin()));
}

LeasedShards::Holding* LeasedShards::find(const LeaseRef& lease) const {
  const auto held = holdings_.find(lease.shard);
  const bool is_held =
      held != holdings_.end() && held->second->lease == lease && !held->second->is_offered;
  return is_held ? held->second.get() : nullptr;
}

Result<void> LeasedShards::begin_load(const LeaseGrant& grant) {
  const LeaseRef lease = grant.lease;
  if (map_.is_output(lease.shard) != are_output_) {
    return refuse("shard {} is no {} shard", raw(lease.shard), are_output_ ? "output" : "input");
  }
  if (auto checked = check_grant(grant, config_, map_, plan_); !checked) return checked;
  const auto held = holdings_.find(lease.shard);
  // An offered shard belongs to an earlier connection, perhaps to a master that counted its own
  // epochs.
  if (held != holdings_.end() && !held->second->is_offered &&
      raw(held->second->lease.epoch) > raw(lease.epoch)) {
    return stale_lease(lease);
  }
  ++version_;
  if (held != holdings_.end()) holdings_.erase(held);
  auto holding = std::make_unique<Holding>();
  holding->lease = lease;
  holding->base_round = grant.base_round;
  holding->next_batch = grant.next_batch;
  holding->shard = make_shard(grant);
  holding->loading = std::make_unique<ChunkLedger>(grant, config_, map_);
  holdings_.emplace(lease.shard, std::move(holding));
  return {};
}

Result<void> LeasedShards::load_chunk(const ShardChunk& chunk) {
  Holding* const holding = find(chunk.lease);
  if (holding == nullptr) return stale_lease(chunk.lease);
  if (holding->loading == nullptr) {
    return refuse("shard {}: chunk {} came after the shard was loaded", raw(chunk.lease.shard),
                  chunk.chunk);
  }
  if (auto accepted = holding->loading->accept(chunk); !accepted) return accepted;
  if (holding->loading->is_base(chunk.chunk)) return holding->shard->load(chunk.rows);
  holding->overlays.push_back(chunk.rows);
  return {};
}

Result<ShardReady> LeasedShards::finish_load(const LeaseRef& lease) {
  Holding* const holding = find(lease);
  if (holding == nullptr) return stale_lease(lease);
  if (holding->loading == nullptr) return ShardReady{lease};
  if (auto complete = holding->loading->check_complete(); !complete) return complete.error();
  ++version_;
  holding->shard->load_initial(*holding->loading);
  for (const ShardRows& rows : holding->overlays) {
    if (auto loaded = holding->shard->load_touched(rows); !loaded) return loaded.error();
  }
  holding->shard->finish_loading();
  holding->overlays.clear();
  holding->loading.reset();
  return ShardReady{lease};
}

std::vector<OfferedShard> LeasedShards::step_back(RoundIndex checkpoint) {
  ++version_;
  std::vector<OfferedShard> kept;
  for (auto entry = holdings_.begin(); entry != holdings_.end();) {
    Holding& holding = *entry->second;
    if (holding.loading != nullptr || holding.base_round < checkpoint ||
        !holding.shard->step_back(holding.base_round - checkpoint)) {
      entry = holdings_.erase(entry);
      continue;
    }
    holding.is_offered = true;
    holding.base_round = checkpoint;
    holding.next_batch = plan_.round_begin(checkpoint);
    kept.push_back({holding.lease, holding.shard->digest()});
    ++entry;
  }
  return kept;
}

Result<ShardReady> LeasedShards::adopt(const LeaseGrant& grant) {
  const auto held = holdings_.find(grant.lease.shard);
  if (held == holdings_.end() || !held->second->is_offered) return stale_lease(grant.lease);
  Holding& holding = *held->second;
  if (!grant.is_held || grant.base_round != holding.base_round ||
      grant.next_batch != holding.next_batch) {
    return refuse("shard {} is held at checkpoint {}, and the lease is for another state",
                  raw(grant.lease.shard), holding.base_round);
  }
  ++version_;
  holding.lease = grant.lease;
  holding.is_offered = false;
  holding.shard->finish_loading();
  return ShardReady{grant.lease};
}

void LeasedShards::drop(const LeaseRef& lease) {
  const auto held = holdings_.find(lease.shard);
  // A late revocation of an earlier lease must not drop the shard under its present lease.
  if (held == holdings_.end() || raw(held->second->lease.epoch) > raw(lease.epoch)) return;
  ++version_;
  holdings_.erase(held);
}

Result<std::vector<LeasedShards::Holding*>> LeasedShards::find_loaded(
    std::span<const LeaseRef> leases) const {
  std::vector<Holding*> found;
  for (const LeaseRef& lease : leases) {
    Holding* const holding = find(lease);
    if (holding == nullptr) return stale_lease(lease);
    if (holding->loading != nullptr) {
      return refuse("shard {} is still being loaded", raw(lease.shard));
    }
    found.push_back(holding);
  }
  return found;
}

Result<std::vector<LeasedShards::Holding*>> LeasedShards::find_at(std::span<const LeaseRef> leases,
                                                                  BatchIndex batch) const {
  auto held = find_loaded(leases);
  if (!held) return held;
  for (const Holding* holding : *held) {
    if (holding->next_batch == batch) continue;
    return refuse("shard {} stands before batch {}, but the unit begins with {}",
                  raw(holding->lease.shard), holding->next_batch, batch);
  }
  return held;
}

void LeasedShards::end_round(Holding& holding, RoundIndex round, std::vector<SparseUpdate> parts,
                             std::vector<ShardCommit>& commits) {
  holding.base_round = round + 1;
  const auto count = static_cast<std::uint32_t>(parts.size());
  for (std::uint32_t part = 0; part < count; ++part) {
    commits.push_back({holding.lease, round, part, count, std::move(parts[part])});
  }
}

Result<std::vector<HandOver>> LeasedShards::hand_over(const LeaseRef& lease) {
  Holding* const holding = find(lease);
  if (holding == nullptr) return stale_lease(lease);
  if (holding->loading != nullptr) {
    return refuse("shard {} is still being loaded: there is nothing to hand over",
                  raw(lease.shard));
  }
  std::vector<ShardRows> rows = holding->shard->touched_rows();
  const auto count = static_cast<std::uint32_t>(rows.size());
  std::vector<HandOver> parts;
  for (std::uint32_t part = 0; part < count; ++part) {
    parts.push_back(
        {lease, holding->base_round, holding->next_batch, part, count, std::move(rows[part])});
  }
  drop(lease);
  return parts;
}

std::vector<LeasedShards::Holding*> LeasedShards::loaded() const {
  std::vector<Holding*> found;
  for (const auto& [id, holding] : holdings_) {
    if (holding->loading == nullptr && !holding->is_offered) found.push_back(holding.get());
  }
  return found;
}

std::vector<LeaseRef> LeasedShards::leases() const {
  std::vector<LeaseRef> leases;
  for (const auto& [id, holding] : holdings_) leases.push_back(holding->lease);
  return leases;
}

std::uint64_t LeasedShards::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, holding] : holdings_) {
    bytes += holding->shard->memory_bytes();
    if (holding->loading != nullptr) bytes += holding->loading->memory_bytes();
    for (const ShardRows& rows : holding->overlays) {
      bytes += (rows.values.size() + rows.codes.size()) * sizeof(float);
    }
  }
  return bytes;
}

}  // namespace gleaner
