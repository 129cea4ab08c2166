// Maps neurons to shards. A seeded permutation places labels, so that frequent labels, which data
// sets number first, spread evenly. Output shards are contiguous ranges of the permuted order.
// Immutable after construction; any thread may use it.
#pragma once

#include <cstdint>

#include "common/counter_random.hpp"
#include "common/ids.hpp"
#include "common/model/model_config.hpp"

namespace gleaner {

// Half-open range of neurons of one layer.
struct NeuronRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] std::uint32_t size() const { return end - begin; }
};

class ShardMap {
 public:
  explicit ShardMap(const ModelConfig& config);

  [[nodiscard]] std::uint32_t output_shards() const { return output_shards_; }

  [[nodiscard]] std::uint32_t input_shards() const { return input_shards_; }

  [[nodiscard]] std::uint32_t hidden() const { return hidden_; }

  [[nodiscard]] std::uint32_t shard_count() const { return output_shards_ + input_shards_; }

  [[nodiscard]] bool is_output(ShardId shard) const { return raw(shard) < output_shards_; }

  [[nodiscard]] ShardId input_shard(std::uint32_t index) const {
    return ShardId{output_shards_ + index};
  }

  // Output shard: a range of output neurons. Input shard: a range of hidden neurons.
  [[nodiscard]] NeuronRange neurons(ShardId shard) const;
  [[nodiscard]] ShardId shard_of_neuron(std::uint32_t neuron) const;  // output neurons

  [[nodiscard]] std::uint32_t neuron_of_label(std::uint32_t label) const;
  [[nodiscard]] std::uint32_t label_of_neuron(std::uint32_t neuron) const;

  // Rows of a shard: its neurons (output), one row per feature and one for the bias (input), or
  // ModelConfig::wide_rows (wide), of which only the first may be in use.
  [[nodiscard]] std::uint32_t row_count(ShardId shard) const;
  // Floats of a row without its optimizer state: H weights and a bias (output), the weights from
  // one feature to the shard's hidden units (input), or kWideWeights weights and a bias (wide).
  [[nodiscard]] std::uint32_t row_width(ShardId shard) const;
  // Number of a row's weights: all floats except an output row's bias.
  [[nodiscard]] std::uint32_t weights_per_row(ShardId shard) const;

  // Hash tables of an output shard: none if sampling uses no tables or rows are wide.
  [[nodiscard]] std::uint32_t tables() const { return tables_; }

  // Codes of a row: one per table (output), or none. Codes of a wide row never change: its neuron,
  // counted from the shard's first, and the features of its weights, ascending. The number of
  // features follows the last feature.
  [[nodiscard]] std::uint32_t codes_per_row(ShardId shard) const;

  // Whether output shards have wide rows.
  [[nodiscard]] bool is_wide() const { return hidden_ == 0; }

  [[nodiscard]] std::uint32_t features() const { return features_; }

 private:
  std::uint32_t labels_;
  std::uint32_t features_;
  std::uint32_t wide_rows_;
  std::uint32_t hidden_;
  std::uint32_t output_shards_;
  std::uint32_t input_shards_;
  std::uint32_t tables_;
  Permutation label_order_;
};

}  // namespace gleaner
