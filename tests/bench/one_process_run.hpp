// The whole training in one process and on one strand: input layer and all output shards, in the
// order that RunPlan's fixed lag prescribes, without network, store or scheduling. What a
// distributed run is compared with, in speed and in what it learns. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/model_config.hpp"
#include "common/result.hpp"
#include "common/run_plan.hpp"
#include "common/shard_map.hpp"
#include "common/thread_pool.hpp"
#include "master/metrics.hpp"
#include "tests/bench/frequency_buckets.hpp"
#include "volunteer/train/input_layer.hpp"
#include "volunteer/train/shard_trainer.hpp"

namespace gleaner {

class OneProcessRun {
 public:
  struct EpochReport {
    std::uint64_t examples = 0;
    double loss = 0;               // mean nats an example
    double active = 0;             // mean active neurons an example
    double input_cpu_seconds = 0;  // of which forward, backward and commits of the input layer
    double cpu_seconds = 0;        // all threads, without evaluation
    double seconds = 0;
  };

  // `config` is valid and belongs to `train`; `train` and `pool` outlive the run.
  OneProcessRun(const ModelConfig& config, const PackedDataset& train, ThreadPool& pool);

  // Lends all output shards to the one trainer.
  Result<void> begin();
  // Trains up to the end of the epoch; epochs in ascending order.
  Result<EpochReport> train_epoch(std::uint32_t epoch);

  struct Evaluation {
    Metrics whole;
    std::array<Metrics, kFrequencyBuckets.size()> buckets;
  };

  Result<Evaluation> evaluate(const PackedDataset& test, std::uint64_t points_max);

  // Called with every part of every output shard's commit.
  void on_commit(std::function<void(const ShardCommit&)> observer) {
    observer_ = std::move(observer);
  }

  // As evaluation sees them.
  [[nodiscard]] HiddenCodes hidden_codes(std::span<const ExampleView> examples) {
    return input_.forward(examples, std::nullopt);
  }

  [[nodiscard]] Positives positives_of(std::span<const ExampleView> examples) const;

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return input_.memory_bytes() + output_.memory_bytes();
  }

 private:
  // A batch whose update the input layer has not seen yet.
  struct InFlight {
    BatchIndex batch = 0;
    std::vector<ExampleView> examples;
    HiddenCodes codes;
    std::vector<std::int32_t> gradient;
  };

  Result<void> train_batch(BatchIndex batch, EpochReport& report);
  void apply_before(BatchIndex batch, EpochReport& report);

  ModelConfig config_;
  const PackedDataset& train_;
  std::vector<std::uint32_t> label_counts_;
  RunPlan plan_;
  ShardMap map_;
  InputLayer input_;
  ShardTrainer output_;
  InversePropensities propensities_;
  std::vector<LeaseRef> leases_;
  std::deque<InFlight> in_flight_;
  std::function<void(const ShardCommit&)> observer_;
};

}  // namespace gleaner
