// Does the work a master sends, one message at a time, and makes the replies: the bridge between
// the protocol and the training function. One thread at a time; loops run on the pool.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/shard_trainer.hpp"
#include "volunteer/core/events.hpp"
#include "volunteer/example_work.hpp"

namespace gleaner::volunteer {

class Executor {
 public:
  // `pool` outlives the executor. A lease that would take the shards beyond `memory_bytes` is
  // refused with kResources. Points that input shards need are kept as `points` says.
  Executor(ThreadPool& pool, std::uint64_t memory_bytes, ExampleStoreOptions points = {});

  // The bytes that shards and points take at present.
  [[nodiscard]] std::uint64_t held_bytes() const;

  // Replies in the order in which they must leave. An error means that the master's message does
  // not fit what is here, or that memory ran out: the connection is not worth keeping.
  Result<std::vector<Message>> execute(const Work& work);

 private:
  [[nodiscard]] std::uint64_t shard_bytes() const;
  void forget();
  Result<std::vector<Message>> dispatch(const Work& work);
  // Performs what waited behind a unit that lacked points, as far as it can be now.
  Result<std::vector<Message>> go_on(std::vector<Message> replies);
  Result<std::vector<Message>> perform(const Message& message);
  Result<std::vector<Message>> run(const Reset& reset);
  Result<std::vector<Message>> run(const LeaseGrant& grant);
  Result<std::vector<Message>> run(const ShardChunk& chunk);
  Result<std::vector<Message>> run(const ReleaseRequest& release);
  Result<std::vector<Message>> run(const Revoke& revoke);
  Result<std::vector<Message>> run(const TrainUnit& unit);
  Result<std::vector<Message>> run(const EvalUnit& unit);

  Result<std::vector<Message>> run(const InputUnit& unit) { return examples_.run(unit); }

  Result<std::vector<Message>> run(const Points& points) { return examples_.run(points); }

  Result<std::vector<Message>> finish_load(const LeaseRef& lease);

  // The trainer that the shard is for.
  [[nodiscard]] LeasedShards& trainer_of(const LeaseRef& lease);
  // Estimate of what loading the shard takes, without the weights of wide rows.
  [[nodiscard]] std::uint64_t bytes_of(const LeaseRef& lease) const;
  [[nodiscard]] Error does_not_fit(const LeaseRef& lease) const;

  ThreadPool& pool_;
  std::uint64_t memory_bytes_;
  ExampleWork examples_;
  std::unique_ptr<ShardTrainer> trainer_;  // output shards over hidden units
  ModelConfig model_;
  std::map<ShardId, std::uint32_t> chunks_missing_;
  // Without a hidden layer all work has one order, and waits behind a unit that lacks points.
  std::deque<Message> behind_;
};

}  // namespace gleaner::volunteer
