// An output shard as LeasedShards wants it: loaded from rows of messages that have been checked.
// One thread at a time; loops run on the pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/chunk_ledger.hpp"
#include "volunteer/train/output/output_shard.hpp"

namespace gleaner {

class HeldOutputShard {
 public:
  // Requires check_grant(grant). Pool and scratch, one for each of its threads, outlive this.
  HeldOutputShard(const ShardContext& context, ThreadPool& pool, std::span<ShardScratch> scratch,
                  const LeaseGrant& grant);

  OutputShard& shard() { return shard_; }

  Result<void> load(const ShardRows& rows);
  Result<void> load_touched(const ShardRows& rows);
  void load_initial(const ChunkLedger& ledger);
  void finish_loading();

  bool step_back(std::uint32_t commits) { return shard_.step_back(commits); }

  [[nodiscard]] std::vector<ShardRows> touched_rows() const { return shard_.touched_rows(); }

  [[nodiscard]] std::uint64_t memory_bytes() const { return shard_.memory_bytes(); }

 private:
  ShardContext context_;
  ThreadPool& pool_;
  std::span<ShardScratch> scratch_;
  std::size_t width_;
  std::size_t tables_;
  std::vector<std::uint32_t> label_counts_;  // until it is loaded
  OutputShard shard_;
};

}  // namespace gleaner
