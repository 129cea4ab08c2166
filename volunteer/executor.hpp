// Does the work a master sends, one message at a time, and makes the replies: the bridge between
// the protocol and the training function. One thread at a time; loops run on the pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "volunteer/core/events.hpp"
#include "volunteer/input_work.hpp"
#include "volunteer/train/output/shard_trainer.hpp"

namespace gleaner::volunteer {

class Executor {
 public:
  // `pool` outlives the executor. A lease that would take the shards beyond `memory_bytes` is
  // refused with kResources. Points that input shards need are kept as `points` says.
  Executor(ThreadPool& pool, std::uint64_t memory_bytes, PointStoreOptions points = {});

  // The bytes that shards and points take at present.
  [[nodiscard]] std::uint64_t held_bytes() const;

  // Replies in the order in which they must leave. An error means that the master's message does
  // not fit what is here, or that memory ran out: the connection is not worth keeping.
  Result<std::vector<Message>> execute(const Work& work);

 private:
  [[nodiscard]] std::uint64_t shard_bytes() const;
  void forget();
  Result<std::vector<Message>> dispatch(const Work& work);
  Result<std::vector<Message>> run(const Reset& reset);
  Result<std::vector<Message>> run(const LeaseGrant& grant);
  Result<std::vector<Message>> run(const ShardChunk& chunk);
  Result<std::vector<Message>> run(const ReleaseRequest& release);
  Result<std::vector<Message>> run(const Revoke& revoke);
  Result<std::vector<Message>> run(const TrainUnit& unit);
  Result<std::vector<Message>> run(const EvalUnit& unit);

  Result<std::vector<Message>> run(const InputUnit& unit) { return inputs_.run(unit); }

  Result<std::vector<Message>> run(const Points& points) { return inputs_.run(points); }

  Result<std::vector<Message>> finish_load(const LeaseRef& lease);

  [[nodiscard]] bool is_output(const LeaseRef& lease) const {
    return raw(lease.shard) < model_.output_shards;
  }

  ThreadPool& pool_;
  std::uint64_t memory_bytes_;
  InputWork inputs_;
  std::unique_ptr<ShardTrainer> trainer_;  // output shards
  ModelConfig model_;
  std::map<ShardId, std::uint32_t> chunks_missing_;
};

}  // namespace gleaner::volunteer
