// Prepared batches of a run without a hidden layer. Threads anywhere in a round share them: each
// batch is prepared once, as long as there is room. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/train/wide/wide_batch.hpp"
#include "schema/messages.hpp"
#include "volunteer/example_store.hpp"

namespace gleaner::volunteer {

class WideBatches {
 public:
  // Returns the examples, or nullopt when some are missing. Any thread may call it.
  using Read = std::function<std::optional<ExampleBatch>(const WantedPoints&)>;

  // Keeps at most `bytes_max`. References outlive the batches.
  WideBatches(const ModelConfig& model, const RunPlan& plan, std::uint64_t bytes_max, Read read)
      : model_(model), plan_(plan), bytes_max_(bytes_max), read_(std::move(read)) {}

  // Null when examples are missing.
  std::shared_ptr<const WideBatch> training(BatchIndex batch);
  // Examples of the evaluation's order.
  std::shared_ptr<const WideBatch> test(std::uint64_t first, std::uint32_t count);

  [[nodiscard]] bool has(BatchIndex batch) const;

  // Batches before this one are not needed again.
  void forget_before(BatchIndex batch);
  void clear();

  [[nodiscard]] std::uint64_t memory_bytes() const;

  // The examples of a batch, or of `count` examples of the evaluation's order.
  [[nodiscard]] WantedPoints training_points(BatchIndex batch) const {
    return {PointSet::kTraining, plan_.points_of(batch)};
  }

  static WantedPoints test_points(std::uint64_t first, std::uint64_t count);

 private:
  using Shared = std::shared_ptr<const WideBatch>;
  using Lock = std::unique_lock<std::mutex>;

  // Prepares a batch that no thread is preparing, and keeps it if there is room. Releases the lock
  // meanwhile.
  Shared prepare(BatchIndex batch, Lock& lock);
  // The next batch of the round, of a few after `batch`, that is neither kept nor being prepared.
  [[nodiscard]] std::optional<BatchIndex> next_missing(BatchIndex batch) const;

  const ModelConfig& model_;
  const RunPlan& plan_;
  const std::uint64_t bytes_max_;
  const Read read_;
  mutable std::mutex mutex_;
  std::condition_variable prepared_;
  std::map<BatchIndex, Shared> training_;
  std::map<std::uint64_t, Shared> test_;  // by their first example
  std::set<BatchIndex> in_hand_;
  bool is_full_ = false;  // the last batch was not kept
  std::uint64_t training_bytes_ = 0;
  std::uint64_t test_bytes_ = 0;
};

}  // namespace gleaner::volunteer
