// The work on input shards. Units wait here, in order, until the points that they need have come
// from the master. One thread at a time; loops run on the pool.
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
#include "schema/messages.hpp"
#include "volunteer/example_store.hpp"

namespace gleaner::volunteer {

class InputWork {
 public:
  // Both outlive this.
  InputWork(ThreadPool& pool, ExampleStore& points) : pool_(pool), points_(points) {}

  // Makes ready for a connection to a run of this model. With a checkpoint, shards of the same run
  // are kept if they can be stepped back to it, and returned; anything else is forgotten.
  std::vector<OfferedShard> begin(const ModelConfig& model, std::optional<RoundIndex> checkpoint);
  // Nothing is held or waits any more.
  void clear();

  // Made at its first use after begin(): who holds no such shard pays nothing.
  InputTrainer& input();

  // Each returns replies in the order in which they must leave.
  Result<std::vector<Message>> run(const InputUnit& unit);
  Result<std::vector<Message>> run(const Points& points);
  // Gives an input shard back, after the units before it.
  Result<std::vector<Message>> run(const ReleaseRequest& release);

  [[nodiscard]] std::uint64_t shard_bytes() const { return input_ ? input_->memory_bytes() : 0; }

 private:
  // All points of a unit, and its examples, one list a step.
  struct Fetched {
    std::vector<ExampleBatch> batches;
    std::vector<std::span<const ExampleView>> examples;
  };

  using Piece = std::variant<InputUnit, ReleaseRequest>;

  Result<std::vector<Message>> wait(Piece piece);
  Result<std::vector<Message>> go_on();
  // False when points are missing.
  Result<bool> run_piece(const InputUnit& unit, std::vector<Message>& replies);
  Result<bool> run_piece(const ReleaseRequest& release, std::vector<Message>& replies);
  // Nullopt when points are missing: a unit is done whole or not at all.
  std::optional<Fetched> fetch(std::span<const WantedPoints> wanted);
  void ask(std::vector<Message>& replies);
  // The points of each step of a unit.
  [[nodiscard]] std::vector<WantedPoints> wanted(const InputUnit& unit) const;

  ThreadPool& pool_;
  ExampleStore& points_;
  ModelConfig model_;
  std::unique_ptr<RunPlan> plan_;
  std::unique_ptr<InputTrainer> input_;
  std::deque<Piece> waiting_;
  BatchIndex forward_end_ = 0;  // behind the last batch whose forward pass was asked for
};

}  // namespace gleaner::volunteer
