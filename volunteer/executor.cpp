#include "volunteer/executor.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

namespace gleaner::volunteer {
namespace {

template <typename T>
void append(std::vector<Message>& messages, std::vector<T>&& more) {
  for (T& message : more) messages.emplace_back(std::move(message));
}

// Points that are kept in memory take little beside the shards.
PointStoreOptions within(PointStoreOptions points, std::uint64_t memory_bytes) {
  points.memory_bytes_max = std::min({points.memory_bytes_max, points.bytes_max, memory_bytes / 8});
  return points;
}

}  // namespace

Executor::Executor(ThreadPool& pool, std::uint64_t memory_bytes, PointStoreOptions points)
    : pool_(pool),
      memory_bytes_(memory_bytes),
      inputs_(pool, within(std::move(points), memory_bytes)) {}

std::uint64_t Executor::held_bytes() const {
  return shard_bytes() + inputs_.point_bytes();
}

std::uint64_t Executor::shard_bytes() const {
  return (trainer_ ? trainer_->memory_bytes() : 0) + inputs_.shard_bytes();
}

Result<std::vector<Message>> Executor::execute(const Work& work) {
  try {
    return dispatch(work);
  } catch (const std::bad_alloc&) {
    // Whatever was being changed may be changed in part: nothing of it is kept.
    forget();
    return Error{ErrorCode::kResources,
                 "this machine has less memory than --memory promises: the shards held here are "
                 "given up, and half as much is offered from now on"};
  }
}

void Executor::forget() {
  trainer_.reset();
  inputs_.clear();
  chunks_missing_.clear();
}

Result<std::vector<Message>> Executor::dispatch(const Work& work) {
  if (const auto* reset = std::get_if<Reset>(&work)) return run(*reset);
  if (std::holds_alternative<Forget>(work)) {
    forget();
    (void)malloc_trim(0);  // the machine is to have it, not this process's next allocation
    return std::vector<Message>{};
  }
  return std::visit(
      [this](const auto& message) -> Result<std::vector<Message>> {
        if constexpr (requires { run(message); }) {
          return run(message);
        } else {
          return Error{ErrorCode::kProtocol, "a message that is no work"};
        }
      },
      std::get<Message>(work));
}

Result<std::vector<Message>> Executor::run(const Reset& reset) {
  chunks_missing_.clear();
  std::vector<OfferedShard> inputs =
      inputs_.begin(reset.model, reset.test_fingerprint, reset.checkpoint);
  if (!reset.checkpoint || trainer_ == nullptr || model_ != reset.model) {
    model_ = reset.model;
    trainer_.reset();  // the machine need not hold both
    trainer_ = std::make_unique<ShardTrainer>(model_, pool_);
  }
  std::vector<Message> replies;
  if (reset.checkpoint) {
    std::vector<OfferedShard> offered = trainer_->step_back(*reset.checkpoint);
    offered.insert(offered.end(), inputs.begin(), inputs.end());  // whose numbers are higher
    replies.emplace_back(ShardOffer{*reset.checkpoint, std::move(offered)});
  }
  return replies;
}

Result<std::vector<Message>> Executor::run(const LeaseGrant& grant) {
  if (grant.is_held) {
    auto ready = is_output(grant.lease) ? trainer_->adopt(grant) : inputs_.trainer().adopt(grant);
    if (!ready) return ready.error();
    return std::vector<Message>{*ready};
  }
  const std::uint64_t bytes = is_output(grant.lease) ? ShardTrainer::shard_bytes(model_)
                                                     : InputTrainer::shard_bytes(model_);
  if (shard_bytes() + bytes > memory_bytes_) {
    return Error{ErrorCode::kResources,
                 fmt::format("shard {} does not fit: {} MiB in use, {} MiB to be used at most",
                             raw(grant.lease.shard), shard_bytes() >> 20, memory_bytes_ >> 20)};
  }
  auto begun =
      is_output(grant.lease) ? trainer_->begin_load(grant) : inputs_.trainer().begin_load(grant);
  if (!begun) return begun.error();
  chunks_missing_[grant.lease.shard] = grant.chunks;
  if (grant.chunks == 0) return finish_load(grant.lease);
  return std::vector<Message>{};
}

Result<std::vector<Message>> Executor::run(const ShardChunk& chunk) {
  const auto missing = chunks_missing_.find(chunk.lease.shard);
  if (missing == chunks_missing_.end()) return std::vector<Message>{};  // revoked meanwhile
  auto loaded =
      is_output(chunk.lease) ? trainer_->load_chunk(chunk) : inputs_.trainer().load_chunk(chunk);
  if (!loaded) return loaded.error();
  if (--missing->second > 0) return std::vector<Message>{};
  return finish_load(chunk.lease);
}

Result<std::vector<Message>> Executor::finish_load(const LeaseRef& lease) {
  chunks_missing_.erase(lease.shard);
  auto ready =
      is_output(lease) ? trainer_->finish_load(lease) : inputs_.trainer().finish_load(lease);
  if (!ready) return ready.error();
  return std::vector<Message>{*ready};
}

Result<std::vector<Message>> Executor::run(const ReleaseRequest& release) {
  if (!is_output(release.lease)) return inputs_.run(release);
  auto parts = trainer_->hand_over(release.lease);
  if (!parts) return parts.error();
  std::vector<Message> replies;
  append(replies, std::move(parts).value());
  return replies;
}

Result<std::vector<Message>> Executor::run(const Revoke& revoke) {
  is_output(revoke.lease) ? trainer_->drop(revoke.lease) : inputs_.trainer().drop(revoke.lease);
  chunks_missing_.erase(revoke.lease.shard);
  return std::vector<Message>{};
}

Result<std::vector<Message>> Executor::run(const TrainUnit& unit) {
  const WorkTimer timer(pool_.gate());
  auto outcome = trainer_->train(unit);
  if (!outcome) return outcome.error();
  outcome->result.compute_us = timer.elapsed_us();
  // The result before the commits: a round must not look whole while its batches are awaited.
  std::vector<Message> replies;
  replies.emplace_back(std::move(outcome->result));
  append(replies, std::move(outcome->commits));
  return replies;
}

Result<std::vector<Message>> Executor::run(const EvalUnit& unit) {
  const WorkTimer timer(pool_.gate());
  auto result = trainer_->evaluate(unit);
  if (!result) return result.error();
  result->compute_us = timer.elapsed_us();
  return std::vector<Message>{std::move(*result)};
}

}  // namespace gleaner::volunteer
