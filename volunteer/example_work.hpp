// The work that needs examples: on input shards, and on output shards without a hidden layer. Units
// wait here, in order, until the points that they need have come from the master. One thread at a
// time; loops run on the pool.
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
#include "common/train/input_trainer.hpp"
#include "common/train/wide_trainer.hpp"
#include "schema/messages.hpp"
#include "volunteer/example_store.hpp"

namespace gleaner::volunteer {

class ExampleWork {
 public:
  ExampleWork(ThreadPool& pool, ExampleStoreOptions points)
      : pool_(pool), points_(std::move(points)) {}

  // Makes ready for a connection to a run of this model. With a checkpoint, shards of the same run
  // are kept if they can be stepped back to it, and returned; anything else is forgotten.
  std::vector<OfferedShard> begin(const ModelConfig& model, std::uint64_t test_fingerprint,
                                  std::optional<RoundIndex> checkpoint);
  // Nothing is held or waits any more, nor is anything kept in memory.
  void clear();

  // Made at their first use after begin(): who holds no such shard pays nothing.
  InputTrainer& input();
  WideTrainer& wide();

  // Each returns replies in the order in which they must leave.
  Result<std::vector<Message>> run(const InputUnit& unit);
  Result<std::vector<Message>> run(const TrainUnit& unit);
  Result<std::vector<Message>> run(const EvalUnit& unit);
  Result<std::vector<Message>> run(const Points& points);
  // Gives an input shard back, after the units before it.
  Result<std::vector<Message>> run(const ReleaseRequest& release);

  // Whether a unit lacks points.
  [[nodiscard]] bool is_waiting() const { return !waiting_.empty(); }

  // The bytes of points that are kept in memory: beside what shards may take, and bounded by
  // itself.
  [[nodiscard]] std::uint64_t point_bytes() const { return points_.memory_bytes(); }

  [[nodiscard]] std::uint64_t shard_bytes() const {
    return (input_ ? input_->memory_bytes() : 0) + (wide_ ? wide_->memory_bytes() : 0);
  }

 private:
  // The points of a step.
  struct Wanted {
    PointSet set = PointSet::kTraining;
    std::vector<std::uint64_t> points;
  };

  // All points of a unit, and its examples, one list a step or batch.
  struct Fetched {
    std::vector<ExampleBatch> batches;
    std::vector<std::span<const ExampleView>> examples;
  };

  using Piece = std::variant<InputUnit, TrainUnit, EvalUnit, ReleaseRequest>;

  Result<std::vector<Message>> wait(Piece piece);
  Result<std::vector<Message>> go_on();
  // False when points are missing.
  Result<bool> run_piece(const InputUnit& unit, std::vector<Message>& replies);
  Result<bool> run_piece(const TrainUnit& unit, std::vector<Message>& replies);
  Result<bool> run_piece(const EvalUnit& unit, std::vector<Message>& replies);
  Result<bool> run_piece(const ReleaseRequest& release, std::vector<Message>& replies);
  // Nullopt when points are missing: a unit is done whole or not at all.
  std::optional<Fetched> fetch(std::span<const Wanted> wanted);
  void ask(std::vector<Message>& replies);
  // The points of each step or batch of a piece.
  [[nodiscard]] std::vector<Wanted> wanted(const Piece& piece) const;
  [[nodiscard]] Wanted held_out(std::uint64_t first, std::uint64_t count) const;

  ThreadPool& pool_;
  ExampleStore points_;
  ModelConfig model_;
  std::unique_ptr<RunPlan> plan_;
  std::unique_ptr<InputTrainer> input_;
  std::unique_ptr<WideTrainer> wide_;
  std::deque<Piece> waiting_;
  BatchIndex forward_end_ = 0;  // behind the last batch whose forward pass was asked for
};

}  // namespace gleaner::volunteer
