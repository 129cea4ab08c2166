// The whole training in one process and on one strand: input layer and all output shards, in the
// order of the Schedule, without network or store. Benches compare distributed runs with it, in
// speed and precision. One thread at a time.
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
    double loss = 0;                // mean nats per example
    double active = 0;              // mean active neurons per example
    double input_cpu_seconds = 0;   // forward, backward and commits of the input layer
    double output_cpu_seconds = 0;  // units of the output shards, with packing
    double cpu_seconds = 0;
    double seconds = 0;
  };

  // The training example of this index; its spans stay valid until the run ends.
  using PointSource = std::function<ExampleView(std::uint64_t)>;

  // `config` is valid and fits `points`; `label_counts` has each label's examples; `pool` outlives
  // the run.
  OneProcessRun(const ModelConfig& config, PointSource points,
                std::vector<std::uint32_t> label_counts, ThreadPool& pool,
                const Kernels& kernels = default_kernels());

  // Batches per unit of the output shards, as far as the lag allows; 1 at first. The bits are the
  // same for every number.
  void set_batches_per_unit(std::uint32_t batches) { batches_per_unit_ = batches; }

  // Lends all output shards to the one trainer.
  Result<void> begin();
  // Trains the untrained batches before `end`, and reports on them.
  Result<Report> train(BatchIndex end);

  // Each example's `top_k` neurons by score, as in evaluation.
  Result<EvalResult> score(std::span<const ExampleView> examples, std::uint32_t top_k);

  // Called with every part of every output shard's commit.
  void on_commit(std::function<void(const ShardCommit&)> observer) {
    observer_ = std::move(observer);
  }

  // As in evaluation.
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
  // A batch without its update of the input layer.
  struct InFlight {
    BatchIndex batch = 0;
    std::vector<ExampleView> examples;
    QuantizedActivations codes;
    std::vector<std::int32_t> gradient;
  };

  void forward(BatchIndex batch, Report& report);
  // Updates the input layer from the oldest batch in flight, whose gradient is known.
  void backward(Report& report);
  void commit(Report& report);
  // Trains a unit of the untrained batches in flight on the output shards.
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
  BatchIndex trained_ = 0;  // the output shards have trained the batches below
  std::function<void(const ShardCommit&)> observer_;
};

}  // namespace gleaner
