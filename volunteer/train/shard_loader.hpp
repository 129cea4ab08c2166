// Assembles a shard from a grant and its chunks, which may arrive in any order. Chunks come from a
// peer, so each is checked in full before anything of it is used; a refused one changes nothing.
// One thread; finish() runs loops on the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/result.hpp"
#include "common/run_plan.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/output_shard.hpp"

namespace gleaner {

// Checks a grant against the run: an output shard, counts of the right size, a position that fits
// its checkpoint.
Result<void> check_grant(const LeaseGrant& grant, const ShardContext& context, const RunPlan& plan);

class ShardLoader {
 public:
  // Requires check_grant(grant).
  ShardLoader(const ShardContext& context, const LeaseGrant& grant);

  [[nodiscard]] const LeaseGrant& grant() const { return grant_; }

  // Refuses a chunk out of range, one that came before, and rows that do not fit the shard.
  Result<void> add(const ShardChunk& chunk);

  // The shard where the grant says it stands. Refused while chunks are missing. Ends the loader.
  Result<std::unique_ptr<OutputShard>> finish(ThreadPool& pool, std::span<ShardScratch> scratch);

  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  Result<void> check_rows(const ShardRows& rows, std::uint32_t chunk,
                          const std::vector<std::uint8_t>& seen) const;
  void fill_initial_rows(ThreadPool& pool);
  void overlay(const ShardRows& rows);

  [[nodiscard]] bool is_base(std::uint32_t chunk) const { return chunk < grant_.base_chunks; }

  ShardContext context_;
  LeaseGrant grant_;
  std::size_t width_;
  std::size_t tables_;
  std::unique_ptr<OutputShard> shard_;
  std::vector<std::uint8_t> has_chunk_;
  std::vector<std::uint8_t> has_base_;     // rows
  std::vector<std::uint8_t> has_overlay_;  // rows
  std::vector<ShardRows> overlays_;        // applied last, as they need the base beneath them
};

}  // namespace gleaner
