// The shards of one layer that a volunteer holds, each under its lease: being loaded, loaded, or
// stepped back and offered. What a lease allows is decided here for both layers; what a shard is
// and computes is the trainer's. One thread at a time.
//
// A `Shard` begins as the initial one and has
//   load(rows), load_initial(ledger)   rows of a checkpoint; those that the ledger has not seen
//   load_touched(rows)                 rows that have moved on from the checkpoint
//   finish_loading()                   after the last row, and after a step back
//   step_back(commits)                 false, with nothing changed, when it cannot go so far back
//   touched_rows()                     what it has beyond its last commit, in parts, at least one
//   memory_bytes()
//
// Anything a message claims is checked and refused with kProtocol or kStaleLease; a refused call
// changes nothing.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// The error for a message that no master of ours sends.
template <typename... Args>
Error refuse(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kProtocol, fmt::format(format, std::forward<Args>(args)...)};
}

// Which chunks of a grant have come. Chunks come from a peer, so each is checked in full before
// anything of it is used; a refused one changes nothing. One thread.

// Checks a grant against the run: a shard that exists, counts of the right size, a position that
// fits its checkpoint.
Result<void> check_grant(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map,
                         const RunPlan& plan);

class ChunkLedger {
 public:
  // Requires check_grant(grant). Borrows configuration and map.
  ChunkLedger(const LeaseGrant& grant, const ModelConfig& config, const ShardMap& map);

  // Notes the chunk. Refuses one out of range, one that came before, and rows that do not fit.
  Result<void> accept(const ShardChunk& chunk);
  // Names a chunk that has not come.
  [[nodiscard]] Result<void> check_complete() const;

  // Rows of a checkpoint, not of a hand-over on top of it.
  [[nodiscard]] bool is_base(std::uint32_t chunk) const { return chunk < base_chunks_; }

  // Whether a chunk of the checkpoint held the row.
  [[nodiscard]] bool has_base(std::size_t row) const { return has_base_[row] != 0; }

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return has_chunk_.size() + has_base_.size() + has_overlay_.size();
  }

 private:
  const ModelConfig& config_;
  const ShardMap& map_;
  LeaseRef lease_;
  std::uint32_t base_chunks_;
  std::vector<std::uint8_t> has_chunk_;
  std::vector<std::uint8_t> has_base_;     // rows
  std::vector<std::uint8_t> has_overlay_;  // rows
};

template <typename Shard>
class LeasedShards {
 public:
  // A shard under a lease: being loaded, or loaded and standing before `next_batch`.
  struct Holding {
    LeaseRef lease;
    RoundIndex base_round = 0;  // checkpoint of the shard's last commit
    BatchIndex next_batch = 0;
    std::unique_ptr<Shard> shard;
    std::unique_ptr<ChunkLedger> loading;  // null once loaded
    std::vector<ShardRows> overlays;       // loaded last, as they need the base beneath them
    bool is_offered = false;               // stepped back; the lease is an earlier one
  };

  // Holds output shards, or input shards. All three outlive this.
  LeasedShards(const ModelConfig& config, const ShardMap& map, const RunPlan& plan, bool are_output)
      : config_(config), map_(map), plan_(plan), are_output_(are_output) {}

  // Loading: begin, then each chunk once in any order, then finish. A shard being loaded or loaded
  // already under an earlier lease is replaced; it goes before `make()` gives the initial one, so
  // that the machine need not hold both.
  template <typename Make>
  Result<void> begin_load(const LeaseGrant& grant, const Make& make);
  Result<void> load_chunk(const ShardChunk& chunk);
  Result<ShardReady> finish_load(const LeaseRef& lease);

  // Steps every loaded shard back to `checkpoint` and returns those, ascending. Shards that cannot
  // go there and shards being loaded are forgotten. No earlier lease counts any more: a shard is
  // adopted, replaced or dropped.
  std::vector<Holding*> step_back(RoundIndex checkpoint);
  // Puts a shard that was stepped back under the grant's lease, ready to be trained. Requires a
  // grant that is held, as of the shard's checkpoint.
  Result<ShardReady> adopt(const LeaseGrant& grant);
  // Forgets the shard, whatever its state; unknown ones are ignored.
  void drop(const LeaseRef& lease);

  // The loaded shards under exactly these leases.
  [[nodiscard]] Result<std::vector<Holding*>> find_loaded(std::span<const LeaseRef> leases) const;
  // The shard has ended `round` with this update: appends its commit.
  void end_round(Holding& holding, RoundIndex round, std::vector<SparseUpdate> parts,
                 std::vector<ShardCommit>& commits) const;
  // The shard's state beyond its last commit, in parts; then forgets the shard.
  Result<std::vector<HandOver>> hand_over(const LeaseRef& lease);

  // All that are loaded under a lease that counts, ascending.
  [[nodiscard]] std::vector<Shard*> loaded() const;
  [[nodiscard]] std::vector<LeaseRef> leases() const;

  // Counts up whenever what loaded() says may have changed.
  [[nodiscard]] std::uint64_t version() const { return version_; }

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  using Holdings = std::map<ShardId, std::unique_ptr<Holding>>;

  static Error stale_lease(const LeaseRef& lease) {
    return {ErrorCode::kStaleLease,
            fmt::format("shard {} is not held under lease {}", raw(lease.shard), raw(lease.epoch))};
  }

  // The holding under exactly this lease, or null.
  [[nodiscard]] Holding* find(const LeaseRef& lease) const;

  const ModelConfig& config_;
  const ShardMap& map_;
  const RunPlan& plan_;
  bool are_output_;
  Holdings holdings_;
  std::uint64_t version_ = 0;
};

template <typename Shard>
typename LeasedShards<Shard>::Holding* LeasedShards<Shard>::find(const LeaseRef& lease) const {
  const auto held = holdings_.find(lease.shard);
  const bool is_held =
      held != holdings_.end() && held->second->lease == lease && !held->second->is_offered;
  return is_held ? held->second.get() : nullptr;
}

template <typename Shard>
template <typename Make>
Result<void> LeasedShards<Shard>::begin_load(const LeaseGrant& grant, const Make& make) {
  const LeaseRef lease = grant.lease;
  if (map_.is_output(lease.shard) != are_output_) {
    return refuse("shard {} is no {} shard", raw(lease.shard), are_output_ ? "output" : "input");
  }
  if (auto checked = check_grant(grant, config_, map_, plan_); !checked) return checked;
  const auto held = holdings_.find(lease.shard);
  // An offered shard is of an earlier connection, perhaps to a master that counted its own epochs.
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
  holding->shard = make();
  holding->loading = std::make_unique<ChunkLedger>(grant, config_, map_);
  holdings_.emplace(lease.shard, std::move(holding));
  return {};
}

template <typename Shard>
Result<void> LeasedShards<Shard>::load_chunk(const ShardChunk& chunk) {
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

template <typename Shard>
Result<ShardReady> LeasedShards<Shard>::finish_load(const LeaseRef& lease) {
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

template <typename Shard>
std::vector<typename LeasedShards<Shard>::Holding*> LeasedShards<Shard>::step_back(
    RoundIndex checkpoint) {
  ++version_;
  std::vector<Holding*> kept;
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
    kept.push_back(&holding);
    ++entry;
  }
  return kept;
}

template <typename Shard>
Result<ShardReady> LeasedShards<Shard>::adopt(const LeaseGrant& grant) {
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

template <typename Shard>
void LeasedShards<Shard>::drop(const LeaseRef& lease) {
  const auto held = holdings_.find(lease.shard);
  // A late revocation of an earlier lease must not take the present one.
  if (held == holdings_.end() || raw(held->second->lease.epoch) > raw(lease.epoch)) return;
  ++version_;
  holdings_.erase(held);
}

template <typename Shard>
Result<std::vector<typename LeasedShards<Shard>::Holding*>> LeasedShards<Shard>::find_loaded(
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

template <typename Shard>
void LeasedShards<Shard>::end_round(Holding& holding, RoundIndex round,
                                    std::vector<SparseUpdate> parts,
                                    std::vector<ShardCommit>& commits) const {
  holding.base_round = round + 1;
  const auto count = static_cast<std::uint32_t>(parts.size());
  for (std::uint32_t part = 0; part < count; ++part) {
    commits.push_back({holding.lease, round, part, count, std::move(parts[part])});
  }
}

template <typename Shard>
Result<std::vector<HandOver>> LeasedShards<Shard>::hand_over(const LeaseRef& lease) {
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

template <typename Shard>
std::vector<Shard*> LeasedShards<Shard>::loaded() const {
  std::vector<Shard*> shards;
  for (const auto& [id, holding] : holdings_) {
    if (holding->loading == nullptr && !holding->is_offered) {
      shards.push_back(holding->shard.get());
    }
  }
  return shards;
}

template <typename Shard>
std::vector<LeaseRef> LeasedShards<Shard>::leases() const {
  std::vector<LeaseRef> leases;
  for (const auto& [id, holding] : holdings_) leases.push_back(holding->lease);
  return leases;
}

template <typename Shard>
std::uint64_t LeasedShards<Shard>::memory_bytes() const {
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
