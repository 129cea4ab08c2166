// Assembles an output shard from a grant and its chunks, which may arrive in any order. A refused
// chunk changes nothing. One thread; finish() runs loops on the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/chunk_ledger.hpp"
#include "volunteer/train/output/output_shard.hpp"

namespace gleaner {

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
  void fill_initial_rows(ThreadPool& pool);
  void overlay(const ShardRows& rows);

  ShardContext context_;
  LeaseGrant grant_;
  std::size_t width_;
  std::size_t tables_;
  ChunkLedger ledger_;
  std::unique_ptr<OutputShard> shard_;
  std::vector<ShardRows> overlays_;  // applied last, as they need the base beneath them
};

}  // namespace gleaner
