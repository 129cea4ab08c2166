#include "volunteer/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "common/os/process.hpp"

namespace gleaner::volunteer {
namespace {

// The part of the memory for prepared batches, and its limit.
constexpr std::uint64_t kBatchFraction = 4;
constexpr std::uint64_t kBatchBytesMax = std::uint64_t{1} << 30;

template <typename T>
void append(std::vector<Message>& messages, std::vector<T>&& more) {
  for (T& message : more) messages.emplace_back(std::move(message));
}

// Examples in memory take little beside the shards.
ExampleStoreOptions within(ExampleStoreOptions points, std::uint64_t memory_bytes) {
  points.memory_bytes_max = std::min({points.memory_bytes_max, points.bytes_max, memory_bytes / 8});
  return points;
}

}  // namespace

Executor::Executor(ThreadPool& pool, std::uint64_t memory_bytes, ExampleStoreOptions points)
    : pool_(pool),
      memory_bytes_(memory_bytes),
      points_(within(std::move(points), memory_bytes)),
      input_(pool, points_) {}

std::uint64_t Executor::held_bytes() const {
  const Lock lock(mutex_);
  return all_bytes();
}

std::uint64_t Executor::all_bytes() const {
  return shard_bytes() + points_.memory_bytes() + (wide_ ? wide_->batch_bytes() : 0);
}

std::uint64_t Executor::shard_bytes() const {
  return (trainer_ ? trainer_->memory_bytes() : 0) + (wide_ ? wide_->shard_bytes() : 0) +
         input_.shard_bytes();
}

void Executor::note_change() {
  ++changes_;
  changes_.notify_all();
}

void Executor::let_begin(bool may_begin) {
  if (may_begin_.exchange(may_begin) != may_begin) note_change();
}

void Executor::stop() {
  may_begin_ = false;
  {
    const Lock lock(mutex_);
    if (wide_) wide_->stop();
  }
  note_change();
}

bool Executor::is_busy() const {
  const Lock lock(mutex_);
  return wide_ && wide_->busy() > 0;
}

Result<std::vector<Message>> Executor::execute(const Work& work) {
  if (const auto sound = pool_.float_watch().check(); !sound) return sound.error();
  Lock lock(mutex_);
  try {
    auto replies = dispatch(work, lock);
    note_change();
    return replies;
  } catch (const std::bad_alloc&) {
    return starve(lock, /*is_lane=*/false);
  }
}

bool Executor::run_next(const std::function<void(Ran)>& deliver) {
  if (!may_begin_) return false;
  Lock lock(mutex_);
  if (!wide_) return false;
  Ran ran{generation_, std::vector<Message>()};
  if (const auto sound = pool_.float_watch().check(); !sound) {
    ran.replies = sound.error();
  } else {
    try {
      auto replies = wide_->run_next(lock);
      if (!replies) return false;
      ran.replies = std::move(*replies);
    } catch (const std::bad_alloc&) {
      ran.replies = starve(lock, /*is_lane=*/true);
    }
  }
  ran.held_bytes = all_bytes();
  deliver(std::move(ran));
  lock.unlock();
  note_change();
  return true;
}

Result<std::vector<Message>> Executor::execute_all(const Work& work) {
  auto replies = execute(work);
  const auto take = [&](Ran ran) {
    if (!ran.replies) {
      replies = std::move(ran.replies);
    } else {
      append(*replies, std::move(*ran.replies));
    }
  };
  while (replies && run_next(take)) {
  }
  return replies;
}

// A change may have been made in part: keeps nothing.
Error Executor::starve(Lock& lock, bool is_lane) {
  forget(lock, is_lane);
  return {ErrorCode::kResources,
          "this machine has less memory than --memory promises: the shards held here are given up, "
          "and half as much is offered from now on"};
}

void Executor::forget(Lock& lock, bool is_lane) {
  if (!lock.owns_lock()) lock.lock();
  if (wide_) wide_->forget();
  if (wide_ && !is_lane) {
    wide_->wait_for_lanes(lock);
    wide_.reset();
  }
  trainer_.reset();
  input_.clear();
  points_.clear();
  chunks_missing_.clear();
}

Result<std::vector<Message>> Executor::dispatch(const Work& work, Lock& lock) {
  if (const auto* reset = std::get_if<Reset>(&work)) return run(*reset, lock);
  if (std::holds_alternative<Forget>(work)) {
    forget(lock, /*is_lane=*/false);
    os::give_memory_back();  // to the machine, not to this process's next allocation
    return std::vector<Message>{};
  }
  // With a hidden layer there are no lanes, and work takes long.
  if (!wide_) lock.unlock();
  return perform(std::get<Message>(work));
}

Result<std::vector<Message>> Executor::perform(const Message& message) {
  return std::visit(
      [this](const auto& m) -> Result<std::vector<Message>> {
        if constexpr (requires { run(m); }) {
          return run(m);
        } else {
          return Error{ErrorCode::kProtocol, "a message that is no work"};
        }
      },
      message);
}

Result<std::vector<Message>> Executor::run(const Reset& reset, Lock& lock) {
  if (wide_) {
    wide_->stop();
    wide_->wait_for_lanes(lock);
  }
  generation_ = reset.generation;
  chunks_missing_.clear();
  points_.begin(reset.model, reset.test_fingerprint);
  std::vector<OfferedShard> others = input_.begin(reset.model, reset.checkpoint);
  const bool is_made = is_wide(reset.model) ? wide_ != nullptr : trainer_ != nullptr;
  if (!reset.checkpoint || !is_made || model_ != reset.model) {
    model_ = reset.model;
    trainer_.reset();  // the machine need not hold both
    wide_.reset();
    if (is_wide(model_)) {
      wide_ = std::make_unique<WideWork>(model_, mutex_, pool_.gate(), points_, pool_.threads(),
                                         std::min(memory_bytes_ / kBatchFraction, kBatchBytesMax));
    } else {
      trainer_ = std::make_unique<ShardTrainer>(model_, pool_);
    }
  }
  std::vector<Message> replies;
  if (reset.checkpoint) {
    std::vector<OfferedShard> offered = wide_ ? wide_->trainer().step_back(*reset.checkpoint)
                                              : trainer_->step_back(*reset.checkpoint);
    offered.insert(offered.end(), others.begin(),
                   others.end());  // input shards' numbers are higher
    replies.emplace_back(ShardOffer{*reset.checkpoint, std::move(offered)});
  }
  return replies;
}

LeasedShards& Executor::trainer_of(const LeaseRef& lease) {
  if (wide_) return wide_->trainer();
  if (raw(lease.shard) >= model_.output_shards) return input_.input();
  return *trainer_;
}

std::uint64_t Executor::bytes_of(const LeaseRef& lease) const {
  // Only the master knows how many weights wide rows have. Here they count as they arrive.
  if (wide_) return WideTrainer::shard_bytes(model_, {});
  if (raw(lease.shard) >= model_.output_shards) return InputTrainer::shard_bytes(model_);
  return ShardTrainer::shard_bytes(model_);
}

Error Executor::does_not_fit(const LeaseRef& lease) const {
  return {ErrorCode::kResources,
          fmt::format("shard {} does not fit: {} MiB in use, {} MiB to be used at most",
                      raw(lease.shard), shard_bytes() >> 20, memory_bytes_ >> 20)};
}

Result<std::vector<Message>> Executor::run(const LeaseGrant& grant) {
  if (wide_) wide_->begin_lease(grant.lease);
  if (grant.is_held) {
    auto ready = trainer_of(grant.lease).adopt(grant);
    if (!ready) return ready.error();
    return std::vector<Message>{*ready};
  }
  const std::uint64_t bytes = bytes_of(grant.lease);
  if (shard_bytes() + bytes > memory_bytes_) return does_not_fit(grant.lease);
  auto begun = trainer_of(grant.lease).begin_load(grant);
  if (!begun) return begun.error();
  chunks_missing_[grant.lease.shard] = grant.chunks;
  if (grant.chunks == 0) return finish_load(grant.lease);
  return std::vector<Message>{};
}

Result<std::vector<Message>> Executor::run(const ShardChunk& chunk) {
  const auto missing = chunks_missing_.find(chunk.lease.shard);
  if (missing == chunks_missing_.end()) return std::vector<Message>{};  // revoked meanwhile
  auto loaded = trainer_of(chunk.lease).load_chunk(chunk);
  if (!loaded) return loaded.error();
  if (wide_ && shard_bytes() > memory_bytes_) return does_not_fit(chunk.lease);
  if (--missing->second > 0) return std::vector<Message>{};
  return finish_load(chunk.lease);
}

Result<std::vector<Message>> Executor::finish_load(const LeaseRef& lease) {
  chunks_missing_.erase(lease.shard);
  auto ready = trainer_of(lease).finish_load(lease);
  if (!ready) return ready.error();
  os::give_memory_back();  // chunks, and rows before their final layout, leave large holes
  return std::vector<Message>{*ready};
}

Result<std::vector<Message>> Executor::run(const ReleaseRequest& release) {
  if (wide_) return wide_->run(release);
  if (raw(release.lease.shard) >= model_.output_shards) return input_.run(release);
  auto parts = trainer_->hand_over(release.lease);
  if (!parts) return parts.error();
  std::vector<Message> replies;
  append(replies, std::move(parts).value());
  return replies;
}

Result<std::vector<Message>> Executor::run(const Revoke& revoke) {
  if (wide_) {
    wide_->run(revoke);
  } else {
    trainer_of(revoke.lease).drop(revoke.lease);
  }
  chunks_missing_.erase(revoke.lease.shard);
  return std::vector<Message>{};
}

Result<std::vector<Message>> Executor::run(const TrainUnit& unit) {
  if (wide_) return wide_->run(unit);
  const WorkTimer timer(pool_.gate());
  auto outcome = trainer_->train(unit);
  if (!outcome) return outcome.error();
  outcome->result.compute_us = timer.elapsed_us();
  // The result leaves before the commits: a round must not look whole while its batches are
  // unanswered.
  std::vector<Message> replies;
  replies.emplace_back(std::move(outcome->result));
  append(replies, std::move(outcome->commits));
  return replies;
}

Result<std::vector<Message>> Executor::run(const EvalUnit& unit) {
  if (wide_) return wide_->run(unit);
  const WorkTimer timer(pool_.gate());
  auto result = trainer_->evaluate(unit);
  if (!result) return result.error();
  result->compute_us = timer.elapsed_us();
  return std::vector<Message>{std::move(*result)};
}

Result<std::vector<Message>> Executor::run(const InputUnit& unit) {
  if (wide_)
    return refuse("unit {} is of input shards, which this run does not have", raw(unit.unit));
  return input_.run(unit);
}

Result<std::vector<Message>> Executor::run(const Points& points) {
  return wide_ ? wide_->run(points) : input_.run(points);
}

}  // namespace gleaner::volunteer
