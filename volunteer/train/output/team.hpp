// The threads that work on one shard: one, which works alone, or all of a pool, where there are
// fewer shards than threads. What is computed is the same.
#pragma once

#include <span>

#include "common/check.hpp"
#include "common/thread_pool.hpp"
#include "volunteer/train/output/shard_scratch.hpp"

namespace gleaner {

class Team {
 public:
  // The calling thread alone, with its working memory.
  Team(ShardScratch& alone) : scratch_(&alone, 1) {}  // NOLINT: implicit; the usual case

  // All threads of the pool. `scratch` is one for each of them.
  Team(ThreadPool& pool, std::span<ShardScratch> scratch) : pool_(&pool), scratch_(scratch) {
    GLEANER_CHECK(scratch.size() >= pool.threads());
  }

  [[nodiscard]] std::size_t threads() const { return pool_ == nullptr ? 1 : pool_->threads(); }

  // The memory of all workers; the first is also for what they share.
  [[nodiscard]] std::span<ShardScratch> scratch() const { return scratch_.first(threads()); }

  // Calls body(index, worker) for every index < count: see ThreadPool::parallel_for.
  void for_each(std::size_t count, const LoopBody& body) const {
    if (pool_ != nullptr) return pool_->parallel_for(count, body);
    for (std::size_t index = 0; index < count; ++index) body(index, 0);
  }

 private:
  ThreadPool* pool_ = nullptr;
  std::span<ShardScratch> scratch_;
};

}  // namespace gleaner
