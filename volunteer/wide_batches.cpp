#include "volunteer/wide_batches.hpp"

#include <algorithm>
#include <numeric>

namespace gleaner::volunteer {
namespace {

constexpr BatchIndex kAhead = 8;
constexpr std::uint64_t kTestFraction = 8;  // of the room, for test examples

}  // namespace

WantedPoints WideBatches::test_points(std::uint64_t first, std::uint64_t count) {
  WantedPoints wanted{PointSet::kTestSet, std::vector<std::uint64_t>(count)};
  std::iota(wanted.points.begin(), wanted.points.end(), first);
  return wanted;
}

std::optional<BatchIndex> WideBatches::next_missing(BatchIndex batch) const {
  if (is_full_) return std::nullopt;
  const BatchIndex end = std::min(batch + kAhead, plan_.round_end(plan_.round_of(batch)));
  for (BatchIndex next = batch + 1; next < end; ++next) {
    if (!training_.contains(next) && !in_hand_.contains(next)) return next;
  }
  return std::nullopt;
}

WideBatches::Shared WideBatches::prepare(BatchIndex batch, Lock& lock) {
  // The destructor tells waiting threads that the preparation has ended, in whatever way.
  struct InHand {
    WideBatches& batches;
    Lock& lock;
    BatchIndex batch;

    ~InHand() {
      if (!lock.owns_lock()) lock.lock();
      batches.in_hand_.erase(batch);
      batches.prepared_.notify_all();
    }
  };

  in_hand_.insert(batch);
  const InHand in_hand{*this, lock, batch};
  lock.unlock();
  Shared prepared;
  if (const auto examples = read_(training_points(batch))) {
    prepared =
        std::make_shared<const WideBatch>(prepare_training(model_, batch, examples->examples));
  }
  lock.lock();
  if (prepared == nullptr) return prepared;
  const std::uint64_t bytes = prepared->memory_bytes();
  is_full_ = training_bytes_ + bytes > bytes_max_ - bytes_max_ / kTestFraction;
  if (!is_full_) {
    training_[batch] = prepared;
    training_bytes_ += bytes;
  }
  return prepared;
}

WideBatches::Shared WideBatches::training(BatchIndex batch) {
  Lock lock(mutex_);
  for (;;) {
    if (const auto kept = training_.find(batch); kept != training_.end()) return kept->second;
    if (!in_hand_.contains(batch)) return prepare(batch, lock);
    // Another thread prepares it. Threads that go through a round together share the work.
    if (const auto next = next_missing(batch)) {
      if (prepare(*next, lock) != nullptr) continue;
    }
    if (in_hand_.contains(batch)) prepared_.wait(lock);
  }
}

WideBatches::Shared WideBatches::test(std::uint64_t first, std::uint32_t count) {
  {
    const Lock lock(mutex_);
    const auto kept = test_.find(first);
    if (kept != test_.end() && kept->second->examples() == count) return kept->second;
  }
  const auto examples = read_(test_points(first, count));
  if (!examples) return nullptr;
  auto prepared = std::make_shared<const WideBatch>(prepare_test(model_, examples->examples));
  const Lock lock(mutex_);
  const std::uint64_t bytes = prepared->memory_bytes();
  if (test_bytes_ + bytes <= bytes_max_ / kTestFraction && test_.emplace(first, prepared).second) {
    test_bytes_ += bytes;
  }
  return prepared;
}

bool WideBatches::has(BatchIndex batch) const {
  const Lock lock(mutex_);
  return training_.contains(batch);
}

void WideBatches::forget_before(BatchIndex batch) {
  const Lock lock(mutex_);
  while (!training_.empty() && training_.begin()->first < batch) {
    training_bytes_ -= training_.begin()->second->memory_bytes();
    training_.erase(training_.begin());
  }
}

void WideBatches::clear() {
  const Lock lock(mutex_);
  training_.clear();
  test_.clear();
  training_bytes_ = test_bytes_ = 0;
}

std::uint64_t WideBatches::memory_bytes() const {
  const Lock lock(mutex_);
  return training_bytes_ + test_bytes_;
}

}  // namespace gleaner::volunteer
