// How good active sets are: what tables of any shape would choose among the rows of a network as it
// stands, against every logit. A bench's judge; one thread at a time.
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

// How an example's neurons other than its true ones were chosen; means over examples, fractions
// between 0 and 1.
struct SamplingQuality {
  double active = 0;      // chosen
  double recall_10 = 0;   // of the 10 highest logits, chosen
  double recall_100 = 0;  // of the 100 highest
  // Fractions of the sum of sigmoid(logit), which is the whole of the negatives' gradient: what the
  // chosen hold, and what as many of the highest would.
  double gradient = 0;
  double gradient_best = 0;
};

// Measures what sampling by `config` (which fits `rows`) would choose for these examples.
SamplingQuality sampling_quality(const ModelConfig& config, const CommittedRows& rows,
                                 const QuantizedActivations& codes, const Positives& positives,
                                 ThreadPool& pool);

}  // namespace gleaner
