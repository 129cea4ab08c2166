// The whole training in one process and on one strand: input layer and all output shards, in the
// order of the Schedule, without network, store or scheduling. What a
// distributed run is compared with, in speed and in what it learns. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/kernels.hpp"
#include "common/train/shard_trainer.hpp"

namespace gleaner {

class OneProcessRun {
 public:
  // The cost of some batches. Processor seconds are the sum over all threads.
  struct Report {
    std::uint64_t examples = 0;
    double loss = 0;                // mean nats an example
    double active = 0;              // mean active neurons an example
    double input_cpu_seconds = 0;   // of which forward, backward and commits of the input layer
    double output_cpu_seconds = 0;  // of which units of the output shards, with their packing
    double cpu_seconds = 0;
    double seconds = 0;
  };

  // The training point of this index; what it refers to stays until the run ends.
  using PointSource = std::function<ExampleView(std::uint64_t)>;

  // `config` is valid and belongs to `points`, of which `label_counts` bear each label; `pool`
  // outlives the run.
  OneProcessRun(const ModelConfig& config, PointSource points,
                std::vector<std::uint32_t> label_counts, ThreadPool& pool,
                const Kernels& kernels = default_kernels());

  // How many batches make a unit of the output shards, as far as the lag lets them: 1 at first. The
  // bits are the same for any number.
  void set_batches_per_unit(std::uint32_t batches) { batches_per_unit_ = batches; }

  // Lends all output shards to the one trainer.
  Result<void> begin();
  // Trains on the batches before `end`; reports on those that were not trained before.
  Result<Report> train(BatchIndex end);

  // The `top_k` neurons with the highest scores of each example, as evaluation sees them.
  Result<EvalResult> score(std::span<const ExampleView> examples, std::uint32_t top_k);

  // Called with every part of every output shard's commit.
  void on_commit(std::function<void(const ShardCommit&)> observer) {
    observer_ = std::move(observer);
  }

  // As evaluation sees them.
  [[nodiscard]] QuantizedActivations quantized_activations(std::span<const ExampleView> examples) {
    return input_.forward(examples, std::nullopt);
  }

  [[nodiscard]] Positives positives_of(std::span<const ExampleView> examples) const;

  [[nodiscard]] const RunPlan& plan() const { return plan_; }

  [[nodiscard]] const ShardMap& map() const { return map_; }

  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const { return label_counts_; }

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return input_.memory_bytes() + output_.memory_bytes();
  }

 private:
  // A batch whose update the input layer has not seen yet.
  struct InFlight {
    BatchIndex batch = 0;
    std::vector<ExampleView> examples;
    QuantizedActivations codes;
    std::vector<std::int32_t> gradient;
  };

  void forward(BatchIndex batch, Report& report);
  // The update of the oldest batch in flight, of which the gradient is known.
  void backward(Report& report);
  void commit(Report& report);
  // The output shards' part of the batches in flight that are not trained yet, as many as make a
  // unit.
  Result<void> train_unit(Report& report);
  Result<ShardTrainer::UnitOutcome> train_shards(std::span<const InFlight> flights, Report& report);
  Result<void> take(const BatchResult& result, InFlight& flight, Report& report) const;

  PointSource points_;
  std::vector<std::uint32_t> label_counts_;
  RunPlan plan_;
  Schedule schedule_{plan_, 0};
  ShardMap map_;
  InputLayer input_;
  ShardTrainer output_;
  std::vector<LeaseRef> leases_;
  std::uint32_t batches_per_unit_ = 1;
  std::vector<InFlight> in_flight_;
  BatchIndex trained_ = 0;  // batches below it, by the output shards
  std::function<void(const ShardCommit&)> observer_;
};

}  // namespace gleaner
