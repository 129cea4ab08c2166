// The quality of active sets: the choice of tables of any shape among a network's present rows,
// against every logit. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/model/shard_map.hpp"
#include "common/thread_pool.hpp"
#include "schema/messages.hpp"
#include "schema/quantized_batch.hpp"

namespace gleaner {

// The output layer's rows (weights, then the bias) as commits leave them, neuron by neuron.
class CommittedRows {
 public:
  CommittedRows(const ModelConfig& config, std::span<const std::uint32_t> label_counts);

  void apply(const ShardCommit& commit);

  [[nodiscard]] std::span<const float> row(std::uint32_t neuron) const {
    return std::span(values_).subspan(neuron * width_, width_);
  }

 private:
  ShardMap map_;
  std::size_t width_;
  std::vector<float> values_;
};

// The choice of an example's neurons other than its true ones. Means over examples, fractions from
// 0 to 1.
struct SamplingQuality {
  double active = 0;      // chosen
  double recall_10 = 0;   // fraction of the 10 highest logits that was chosen
  double recall_100 = 0;  // of the 100 highest
  // Fractions of the sum of sigmoid(logit), the gradient of all negatives: of the chosen neurons,
  // and of as many of the highest.
  double gradient = 0;
  double gradient_best = 0;
};

// Measures the sampling by `config`, which fits `rows`, on these examples.
SamplingQuality sampling_quality(const ModelConfig& config, const CommittedRows& rows,
                                 const QuantizedActivations& codes, const Positives& positives,
                                 ThreadPool& pool);

}  // namespace gleaner
