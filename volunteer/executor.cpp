#include "volunteer/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

#include "common/os/process.hpp"

namespace gleaner::volunteer {
namespace {

// More messages than a master within its limits ever has out with one volunteer.
constexpr std::size_t kBehindMax = 8192;

template <typename T>
void append(std::vector<Message>& messages, std::vector<T>&& more) {
  for (T& message : more) messages.emplace_back(std::move(message));
}

// Points that are kept in memory take little beside the shards.
ExampleStoreOptions within(ExampleStoreOptions points, std::uint64_t memory_bytes) {
  points.memory_bytes_max = std::min({points.memory_bytes_max, points.bytes_max, memory_bytes / 8});
  return points;
}

}  // namespace

Executor::Executor(ThreadPool& pool, std::uint64_t memory_bytes, ExampleStoreOptions points)
    : pool_(pool),
      memory_bytes_(memory_bytes),
      examples_(pool, within(std::move(points), memory_bytes)) {}

std::uint64_t Executor::held_bytes() const {
  return shard_bytes() + examples_.point_bytes();
}

std::uint64_t Executor::shard_bytes() const {
  return (trainer_ ? trainer_->memory_bytes() : 0) + examples_.shard_bytes();
}

Result<std::vector<Message>> Executor::execute(const Work& work) {
  if (const auto sound = pool_.float_watch().check(); !sound) return sound.error();
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
  behind_.clear();
  trainer_.reset();
  examples_.clear();
  chunks_missing_.clear();
}

Result<std::vector<Message>> Executor::dispatch(const Work& work) {
  if (const auto* reset = std::get_if<Reset>(&work)) return run(*reset);
  if (std::holds_alternative<Forget>(work)) {
    forget();
    os::give_memory_back();  // the machine is to have it, not this process's next allocation
    return std::vector<Message>{};
  }
  const Message& message = std::get<Message>(work);
  if (!is_wide(model_) || std::holds_alternative<Points>(message)) {
    auto replies = perform(message);
    return replies ? go_on(std::move(*replies)) : std::move(replies);
  }
  if (behind_.size() >= kBehindMax) {
    return Error{
        ErrorCode::kBusy,
        fmt::format("the master sends work and not the examples that it needs: {} messages "
                    "wait",
                    behind_.size())};
  }
  behind_.push_back(message);
  return go_on({});
}

Result<std::vector<Message>> Executor::go_on(std::vector<Message> replies) {
  while (!behind_.empty() && !examples_.is_waiting()) {
    const Message message = std::move(behind_.front());
    behind_.pop_front();
    auto more = perform(message);
    if (!more) return more;
    append(replies, std::move(*more));
  }
  return replies;
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

Result<std::vector<Message>> Executor::run(const Reset& reset) {
  behind_.clear();
  chunks_missing_.clear();
  std::vector<OfferedShard> others =
      examples_.begin(reset.model, reset.test_fingerprint, reset.checkpoint);
  if (!reset.checkpoint || trainer_ == nullptr || model_ != reset.model) {
    model_ = reset.model;
    trainer_.reset();  // the machine need not hold both
    if (!is_wide(model_)) trainer_ = std::make_unique<ShardTrainer>(model_, pool_);
  }
  std::vector<Message> replies;
  if (reset.checkpoint) {
    std::vector<OfferedShard> offered;
    if (trainer_ != nullptr) offered = trainer_->step_back(*reset.checkpoint);
    offered.insert(offered.end(), others.begin(),
                   others.end());  // input shards' numbers are higher
    replies.emplace_back(ShardOffer{*reset.checkpoint, std::move(offered)});
  }
  return replies;
}

LeasedShards& Executor::trainer_of(const LeaseRef& lease) {
  if (raw(lease.shard) >= model_.output_shards) return examples_.input();
  if (is_wide(model_)) return examples_.wide();
  return *trainer_;
}

std::uint64_t Executor::bytes_of(const LeaseRef& lease) const {
  if (raw(lease.shard) >= model_.output_shards) return InputTrainer::shard_bytes(model_);
  // The master knows how many weights wide rows have; here they are counted as they come.
  return is_wide(model_) ? WideTrainer::shard_bytes(model_, {}) : ShardTrainer::shard_bytes(model_);
}

Error Executor::does_not_fit(const LeaseRef& lease) const {
  return {ErrorCode::kResources,
          fmt::format("shard {} does not fit: {} MiB in use, {} MiB to be used at most",
                      raw(lease.shard), shard_bytes() >> 20, memory_bytes_ >> 20)};
}

Result<std::vector<Message>> Executor::run(const LeaseGrant& grant) {
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
  if (is_wide(model_) && shard_bytes() > memory_bytes_) return does_not_fit(chunk.lease);
  if (--missing->second > 0) return std::vector<Message>{};
  return finish_load(chunk.lease);
}

Result<std::vector<Message>> Executor::finish_load(const LeaseRef& lease) {
  chunks_missing_.erase(lease.shard);
  auto ready = trainer_of(lease).finish_load(lease);
  if (!ready) return ready.error();
  os::give_memory_back();  // chunks, and rows before they are laid out, leave holes of its size
  return std::vector<Message>{*ready};
}

Result<std::vector<Message>> Executor::run(const ReleaseRequest& release) {
  if (raw(release.lease.shard) >= model_.output_shards) return examples_.run(release);
  auto parts = trainer_of(release.lease).hand_over(release.lease);
  if (!parts) return parts.error();
  std::vector<Message> replies;
  append(replies, std::move(parts).value());
  return replies;
}

Result<std::vector<Message>> Executor::run(const Revoke& revoke) {
  trainer_of(revoke.lease).drop(revoke.lease);
  chunks_missing_.erase(revoke.lease.shard);
  return std::vector<Message>{};
}

Result<std::vector<Message>> Executor::run(const TrainUnit& unit) {
  if (is_wide(model_)) return examples_.run(unit);
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
  if (is_wide(model_)) return examples_.run(unit);
  const WorkTimer timer(pool_.gate());
  auto result = trainer_->evaluate(unit);
  if (!result) return result.error();
  result->compute_us = timer.elapsed_us();
  return std::vector<Message>{std::move(*result)};
}

}  // namespace gleaner::volunteer
