// Work on input shards. Units wait here in their order until their examples have come from the
// master. One thread at a time; loops run on the pool.
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

  // Prepares for a connection to a run of this model. With a checkpoint, shards of the same run
  // that can be stepped back to it are kept and returned. All other shards are forgotten.
  std::vector<OfferedShard> begin(const ModelConfig& model, std::optional<RoundIndex> checkpoint);
  // Drops all shards and waiting units.
  void clear();

  // Made at its first use after begin(): a volunteer without input shards spends no memory.
  InputTrainer& input();

  // Return replies in the order in which they must leave.
  Result<std::vector<Message>> run(const InputUnit& unit);
  Result<std::vector<Message>> run(const Points& points);
  // Gives an input shard back, after the units before it.
  Result<std::vector<Message>> run(const ReleaseRequest& release);

  [[nodiscard]] std::uint64_t shard_bytes() const { return input_ ? input_->memory_bytes() : 0; }

 private:
  // The examples of a unit's steps, one list a step.
  struct Fetched {
    std::vector<ExampleBatch> batches;
    std::vector<std::span<const ExampleView>> examples;
  };

  using Piece = std::variant<InputUnit, ReleaseRequest>;

  Result<std::vector<Message>> wait(Piece piece);
  Result<std::vector<Message>> go_on();
  Result<bool> run_piece(const InputUnit& unit, std::vector<Message>& replies);
  Result<bool> run_piece(const ReleaseRequest& release, std::vector<Message>& replies);
  // Nullopt when examples are missing: a unit is done whole or not at all.
  std::optional<Fetched> fetch(std::span<const WantedPoints> wanted);
  void ask(std::vector<Message>& replies);
  // The examples of each step of a unit.
  [[nodiscard]] std::vector<WantedPoints> wanted(const InputUnit& unit) const;

  ThreadPool& pool_;
  ExampleStore& points_;
  ModelConfig model_;
  std::unique_ptr<RunPlan> plan_;
  std::unique_ptr<InputTrainer> input_;
  std::deque<Piece> waiting_;
  BatchIndex forward_end_ = 0;  // behind the last requested forward pass
};

}  // namespace gleaner::volunteer
