// The master's own compute: the data, and the input layer unless volunteers hold it. Performs the
// core's worker tasks in order. One thread at a time; loops run on the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/counter_random.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/model/calibration.hpp"
#include "common/model/precision.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/train/input_layer.hpp"
#include "master/core/events.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Judged examples that are kept of an evaluation, at most.
inline constexpr std::size_t kComparedMax = 4000;

// A test example with labels, and whether the network's first answer is one of them. Its view
// points into the test set.
struct JudgedExample {
  ExampleView example;
  bool is_hit = false;
};

class Worker {
 public:
  // `train`, `pool` and `test` (null: no evaluation) outlive the worker. `label_counts` has one
  // entry per label of the training data. With `lends_input` volunteers hold the input layer, and
  // EncodeTask comes in place of ForwardTask, CommitInputTask and EvalForwardTask.
  Worker(const ModelConfig& model, const PackedDataset& train, const PackedDataset* test,
         std::vector<std::uint32_t> label_counts, ThreadPool& pool, bool lends_input);

  // Reads the input layer of the store's last checkpoint, unless volunteers hold it.
  Result<void> load(RunStore& store);

  // Returns the event that answers the task; TaskFailed when the thread's rounding mode or a data
  // file has changed.
  Event run(const WorkerTask& task);
  // An error once another program has changed a data file. Any thread.
  [[nodiscard]] Result<void> check_data() const;

  // The first labelled examples of the last evaluation. To be called while no task runs.
  [[nodiscard]] const std::vector<JudgedExample>& judged() const { return judged_; }

 private:
  Event run_task(const ForwardTask& task);
  static Event run_task(const AddGradientsTask& task);
  Event run_task(const BackwardTask& task);
  Event run_task(const CommitInputTask& task);
  Event run_task(const EvalForwardTask& task);
  Event run_task(const EncodeTask& task);
  Event run_task(const ReadPointsTask& task);
  Event run_task(const EvalScoreTask& task);
  Event run_task(const EvalFinishTask& task);

  Event forward_done(BatchIndex batch, const std::vector<ExampleView>& examples,
                     QuantizedActivations codes) const;
  Event eval_forward_done(std::uint64_t begin, std::uint64_t end,
                          const QuantizedActivations& codes);
  [[nodiscard]] std::vector<ExampleView> examples_of(BatchIndex batch) const;
  // Appends the output neurons of the example's labels.
  void add_positives(const ExampleView& example, Positives& positives) const;
  [[nodiscard]] Positives positives_of(const std::vector<ExampleView>& examples) const;
  // The best labels of the task's `i`-th example over all shards, best first.
  [[nodiscard]] std::vector<ScoredNeuron> best_of(const EvalScoreTask& task, std::size_t i) const;
  // The test example at this position of the seeded order: a sample must not be the file's
  // beginning.
  [[nodiscard]] ExampleView held_out(std::uint64_t position) const;

  const ModelConfig model_;
  const RunPlan plan_;
  const ShardMap map_;
  const PackedDataset& train_;
  const PackedDataset* test_;
  ThreadPool& pool_;
  ActivationQuantizer coder_;
  std::optional<InputLayer> input_;  // unless volunteers hold it
  InversePropensities propensities_;
  Permutation test_order_;
  std::optional<MetricSums> sums_;        // of the evaluation under way
  double ndcg_at_3_ = 0, ndcg_at_5_ = 0;  // sums
  std::vector<JudgedLogit> answers_;
  std::uint64_t scored_ = 0;
  std::vector<JudgedExample> judged_;  // at most kComparedMax
};

}  // namespace gleaner
