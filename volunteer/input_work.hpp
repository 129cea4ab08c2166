// The work on input shards: units wait here, in order, until the points that they need have come
// from the master; nothing else waits for them. One thread at a time; loops run on the pool.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"
#include "volunteer/point_store.hpp"
#include "volunteer/train/input/input_trainer.hpp"

namespace gleaner::volunteer {

class InputWork {
 public:
  InputWork(ThreadPool& pool, PointStoreOptions points) : pool_(pool), points_(std::move(points)) {}

  // Makes ready for a connection to a run of this model. With a checkpoint, shards of the same run
  // are kept if they can be stepped back to it, and returned; anything else is forgotten.
  std::vector<OfferedShard> begin(const ModelConfig& model, std::uint64_t test_fingerprint,
                                  std::optional<RoundIndex> checkpoint);
  // Nothing is held or waits any more, nor is anything kept in memory.
  void clear();

  // Made at its first use after begin(): who holds no input shard pays nothing.
  InputTrainer& trainer();

  // Each returns replies in the order in which they must leave.
  Result<std::vector<Message>> run(const InputUnit& unit);
  Result<std::vector<Message>> run(const Points& points);
  // Comes after the units before it.
  Result<std::vector<Message>> run(const ReleaseRequest& release);

  // The bytes of points that are kept in memory: beside what shards may take, and bounded by
  // itself.
  [[nodiscard]] std::uint64_t point_bytes() const { return points_.memory_bytes(); }

  [[nodiscard]] std::uint64_t shard_bytes() const {
    return trainer_ ? trainer_->memory_bytes() : 0;
  }

 private:
  // The points of a step.
  struct Wanted {
    PointSet set = PointSet::kTraining;
    std::vector<std::uint64_t> points;
  };

  // Forgets shards and work, but no points.
  Result<std::vector<Message>> wait(std::variant<InputUnit, ReleaseRequest> work);
  Result<std::vector<Message>> go_on();
  // False when points are missing.
  Result<bool> run_unit(const InputUnit& unit, std::vector<Message>& replies);
  void ask(std::vector<Message>& replies);
  [[nodiscard]] Wanted wanted(const InputStep& step) const;

  ThreadPool& pool_;
  PointStore points_;
  ModelConfig model_;
  std::unique_ptr<RunPlan> plan_;
  std::unique_ptr<InputTrainer> trainer_;
  std::deque<std::variant<InputUnit, ReleaseRequest>> waiting_;
  BatchIndex forward_end_ = 0;  // behind the last batch whose forward pass was asked for
};

}  // namespace gleaner::volunteer
