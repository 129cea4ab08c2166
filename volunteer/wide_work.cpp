#include "volunteer/wide_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gleaner::volunteer {
namespace {

// More units of a shard than a master within its limits has out.
constexpr std::size_t kUnitsMax = 1024;
// Batches ahead whose examples are requested when there is no room for a whole round's.
constexpr BatchIndex kWideBatchesAhead = 8;

const LeaseRef& lease_of(const TrainUnit& unit) {
  return unit.leases.front();
}

}  // namespace

std::optional<BatchIndex> WideWork::Queue::next_batch() const {
  const auto* unit = units.empty() ? nullptr : std::get_if<TrainUnit>(&units.front());
  if (unit == nullptr) return std::nullopt;
  return round ? next.load() : unit->batches.front().batch;
}

void WideWork::Queue::pop() {
  units.pop_front();
  numbers.pop_front();
  round.reset();
  compute_us = 0;
}

WideWork::WideWork(const ModelConfig& model, std::mutex& mutex, PauseGate& gate,
                   ExampleStore& points, unsigned lanes, std::uint64_t batch_bytes)
    : model_(model),
      plan_(model_),
      gate_(gate),
      points_(points),
      lanes_(lanes),
      trainer_(model_),
      batches_(model_, plan_, batch_bytes, [&mutex, &points](const WantedPoints& wanted) {
        const Lock lock(mutex);
        auto examples = points.read(wanted.set, wanted.points);
        // Examples that were kept in memory for lack of room have been used.
        if (examples) points.release(wanted.set, wanted.points);
        return examples;
      }) {}

std::uint64_t WideWork::shard_bytes() const {
  std::uint64_t bytes = trainer_.memory_bytes();
  for (const auto& [shard, queue] : queues_) {
    if (queue->round) bytes += queue->round_bytes;
  }
  return bytes;
}

// ---- Messages of the master --------------------------------------------------------------------

Result<WideWork::Replies> WideWork::queue(const LeaseRef& lease, Unit unit) {
  std::shared_ptr<Queue>& queue = queues_[lease.shard];
  if (queue == nullptr) queue = std::make_shared<Queue>();
  queue->lease = lease;
  if (queue->units.size() >= kUnitsMax) {
    return Error{ErrorCode::kBusy,
                 fmt::format("the master sends units of shard {} faster than they are done, or not "
                             "the examples that they need: {} wait",
                             raw(lease.shard), queue->units.size())};
  }
  queue->units.push_back(std::move(unit));
  queue->numbers.push_back(units_++);
  Replies replies;
  ask(replies);
  return replies;
}

Result<WideWork::Replies> WideWork::run(const TrainUnit& unit) {
  if (auto factor = trainer_.check(unit); !factor) return factor.error();
  return queue(lease_of(unit), unit);
}

Result<WideWork::Replies> WideWork::run(const EvalUnit& unit) {
  if (auto checked = trainer_.check(unit); !checked) return checked.error();
  return queue(unit.leases.front(), unit);
}

Result<WideWork::Replies> WideWork::run(const Points& points) {
  if (auto added = points_.add(points); !added) return added.error();
  Replies replies;
  ask(replies);
  return replies;
}

Result<WideWork::Replies> WideWork::run(const ReleaseRequest& release) {
  auto& queue = queues_[release.lease.shard];
  if (queue == nullptr) queue = std::make_shared<Queue>();
  queue->lease = release.lease;
  queue->is_to_be_released = true;
  const std::size_t kept = queue->has_begun() ? 1 : 0;
  queue->units.resize(std::min(queue->units.size(), kept));
  queue->numbers.resize(queue->units.size());
  Replies replies;
  const std::shared_ptr<Queue> own = queue;
  if (auto released = this->release(*own, replies); !released) return released.error();
  return replies;
}

void WideWork::drop_units(const LeaseRef& lease) {
  const auto found = queues_.find(lease.shard);
  if (found == queues_.end() || raw(found->second->lease.epoch) > raw(lease.epoch)) return;
  found->second->is_stopped = true;
  gate_.wake();
  queues_.erase(found);
}

void WideWork::run(const Revoke& revoke) {
  trainer_.drop(revoke.lease);
  drop_units(revoke.lease);
}

void WideWork::stop() {
  for (const auto& [shard, queue] : queues_) queue->is_stopped = true;
  queues_.clear();
  asked_.clear();
  gate_.wake();
}

void WideWork::wait_for_lanes(Lock& lock) {
  idle_.wait(lock, [this] { return busy_ == 0; });
}

void WideWork::forget() {
  stop();
  trainer_.drop_all();
  batches_.clear();
}

Result<void> WideWork::release(Queue& queue, Replies& replies) {
  if (!queue.is_to_be_released || queue.has_begun()) return {};
  auto parts = trainer_.hand_over(queue.lease);
  queues_.erase(queue.lease.shard);
  if (!parts) return parts.error();
  for (HandOver& part : *parts) replies.emplace_back(std::move(part));
  return {};
}

// ---- Work of a lane ----------------------------------------------------------------------------

WantedPoints WideWork::wanted(const Queue& queue) const {
  if (const auto next = queue.next_batch()) return batches_.training_points(*next);
  const auto& unit = std::get<EvalUnit>(queue.units.front());
  return WideBatches::test_points(unit.first, *trainer_.check(unit));
}

std::shared_ptr<WideWork::Queue> WideWork::next_runnable() {
  std::vector<std::pair<std::uint64_t, std::shared_ptr<Queue>>> waiting;
  unsigned begun = 0;
  for (const auto& [shard, queue] : queues_) {
    if (queue->round) ++begun;
    if (queue->is_on_lane || queue->units.empty()) continue;
    waiting.emplace_back(queue->numbers.front(), queue);
  }
  std::ranges::sort(waiting, {}, &std::pair<std::uint64_t, std::shared_ptr<Queue>>::first);
  std::set<BatchIndex> missing;
  for (const auto& [number, queue] : waiting) {
    const auto next = queue->next_batch();
    // A round that waits for examples keeps its lane's memory: at most as many rounds as lanes.
    if (next && !queue->round && begun >= lanes_) continue;
    if (next && (missing.contains(*next))) continue;
    if (next && batches_.has(*next)) return queue;
    const WantedPoints points = wanted(*queue);
    if (points_.has_all(points.set, points.points)) return queue;
    if (next) missing.insert(*next);
  }
  return nullptr;
}

std::optional<Result<WideWork::Replies>> WideWork::run_next(Lock& lock) {
  // Keeps the queue alive for the lane, since others may drop it meanwhile.
  const std::shared_ptr<Queue> queue = next_runnable();
  if (queue == nullptr) return std::nullopt;

  // Gives the lane back on every return.
  struct OnLane {
    WideWork& work;
    Queue& queue;
    Lock& lock;

    OnLane(WideWork& of, Queue& taken, Lock& held) : work(of), queue(taken), lock(held) {
      queue.is_on_lane = true;
      ++work.busy_;
    }

    ~OnLane() {
      if (!lock.owns_lock()) lock.lock();
      queue.is_on_lane = false;
      --work.busy_;
      work.idle_.notify_all();
    }
  };

  Result<Replies> replies = Replies();
  {
    const OnLane on_lane(*this, *queue, lock);
    replies = perform(*queue, lock);
  }
  if (queue->is_stopped) return Replies();
  if (!replies) return replies;
  if (auto released = release(*queue, *replies); !released) return released.error();
  ask(*replies);
  return replies;
}

Result<WideWork::Replies> WideWork::perform(Queue& queue, Lock& lock) {
  return queue.next_batch() ? perform_training(queue, lock) : perform_evaluation(queue, lock);
}

bool WideWork::train(Queue& queue, std::vector<SparseUpdate>& update) {
  const WorkTimer timer(gate_);
  WideRound& round = *queue.round;
  while (!round.is_done() && !queue.is_stopped) {
    gate_.pass(queue.is_stopped);
    const auto batch = batches_.training(round.next_batch());
    if (batch == nullptr) break;
    round.train(*batch, trainer_.rate(round.next_batch(), queue.factor));
    queue.next = round.next_batch();
    queue.round_bytes = round.memory_bytes();
  }
  const bool is_done = round.is_done() && !queue.is_stopped;
  if (is_done) update = round.commit();
  queue.compute_us += timer.elapsed_us();
  return is_done;
}

Result<WideWork::Replies> WideWork::perform_training(Queue& queue, Lock& lock) {
  const TrainUnit unit = std::get<TrainUnit>(queue.units.front());
  if (!queue.round) {
    const auto factor = trainer_.check(unit);
    if (!factor) return factor.error();
    auto round = trainer_.begin(unit);
    if (!round) return round.error();
    queue.factor = *factor;
    queue.round = std::move(*round);
    queue.next = unit.batches.front().batch;
  }
  lock.unlock();
  std::vector<SparseUpdate> update;
  const bool is_done = train(queue, update);
  lock.lock();
  if (!is_done) return Replies();
  // The shard has committed, even if nobody wants the result any more.
  auto outcome = trainer_.finish(unit, *queue.round, std::move(update));
  if (queue.is_stopped) return Replies();
  if (!outcome) return outcome.error();
  outcome->result.compute_us = queue.compute_us;
  queue.pop();
  // The result leaves before the commits: a round must not look whole while its results are
  // unanswered.
  Replies replies;
  replies.emplace_back(std::move(outcome->result));
  for (ShardCommit& commit : outcome->commits) replies.emplace_back(std::move(commit));
  return replies;
}

Result<WideWork::Replies> WideWork::perform_evaluation(Queue& queue, Lock& lock) {
  const EvalUnit unit = std::get<EvalUnit>(queue.units.front());
  const auto count = trainer_.check(unit);
  if (!count) return count.error();
  const auto shard = trainer_.find_shard(queue.lease);
  if (!shard) return shard.error();
  lock.unlock();
  gate_.pass(queue.is_stopped);
  const WorkTimer timer(gate_);
  std::optional<EvalResult> result;
  if (const auto examples = batches_.test(unit.first, *count)) {
    result = score(unit, **shard, model_.features, *examples);
    result->compute_us = timer.elapsed_us();
  }
  lock.lock();
  if (!result || queue.is_stopped) return Replies();
  queue.pop();
  Replies replies;
  replies.emplace_back(std::move(*result));
  return replies;
}

// ---- Examples ----------------------------------------------------------------------------------

void WideWork::ask_for(const WantedPoints& wanted, Replies& replies) {
  while (auto request = points_.request(wanted.set, wanted.points)) {
    replies.emplace_back(std::move(*request));
  }
}

void WideWork::ask_ahead(BatchIndex next, Replies& replies) {
  const BatchIndex round_end = plan_.round_end(plan_.round_of(next));
  const bool keeps_all = points_.keeps_all(PointSet::kTraining);
  const BatchIndex end = keeps_all ? round_end : std::min(round_end, next + kWideBatchesAhead);
  BatchIndex& asked = asked_[plan_.round_of(next)];
  asked = keeps_all ? std::max(asked, next) : next;
  for (; asked < end && !points_.has_asked_enough(); ++asked) {
    ask_for(batches_.training_points(asked), replies);
  }
}

void WideWork::ask(Replies& replies) {
  std::set<BatchIndex> batches;
  for (const auto& [shard, queue] : queues_) {
    if (queue->units.empty()) continue;
    if (const auto next = queue->next_batch()) {
      batches.insert(*next);
    } else {
      ask_for(wanted(*queue), replies);
    }
  }
  if (batches.empty()) return;
  const RoundIndex round = plan_.round_of(*batches.begin());
  batches_.forget_before(plan_.round_begin(round));
  std::erase_if(asked_, [&](const auto& of_round) { return of_round.first < round; });
  if (points_.is_own(PointSet::kTraining)) return;
  for (const BatchIndex next : batches) {
    if (next < plan_.batch_count() && !batches_.has(next)) {
      ask_for(batches_.training_points(next), replies);
    }
  }
  for (const BatchIndex next : batches) ask_ahead(next, replies);
}

}  // namespace gleaner::volunteer
