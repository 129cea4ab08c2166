#include "common/model/shard_map.hpp"

#include "common/limits.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

// Splits `count` neurons into `parts` ranges whose sizes differ by at most one.
std::uint32_t boundary(std::uint64_t count, std::uint64_t parts, std::uint64_t part) {
  return static_cast<std::uint32_t>(count * part / parts);
}

}  // namespace

ShardMap::ShardMap(const ModelConfig& config)
    : labels_(config.labels),
      features_(config.features),
      wide_rows_(config.wide_rows),
      hidden_(config.hidden),
      output_shards_(config.output_shards),
      input_shards_(gleaner::is_wide(config) ? 0 : config.input_shards),
      tables_(config.sampling == Sampling::kLsh && config.hidden > 0 ? config.tables : 0),
      label_order_(config.labels, counter_random(config.seed, Purpose::kNeuronOrder)) {}

NeuronRange ShardMap::neurons(ShardId shard) const {
  GLEANER_CHECK(raw(shard) < shard_count());
  if (is_output(shard)) {
    return {boundary(labels_, output_shards_, raw(shard)),
            boundary(labels_, output_shards_, raw(shard) + std::uint64_t{1})};
  }
  const std::uint32_t width = hidden_ / input_shards_;
  const std::uint32_t index = raw(shard) - output_shards_;
  return {index * width, (index + 1) * width};
}

ShardId ShardMap::shard_of_neuron(std::uint32_t neuron) const {
  GLEANER_CHECK(neuron < labels_);
  // Inverts boundary(): the last part that begins at or before the neuron.
  const std::uint64_t part = ((std::uint64_t{neuron} + 1) * output_shards_ - 1) / labels_;
  return ShardId{static_cast<std::uint32_t>(part)};
}

std::uint32_t ShardMap::neuron_of_label(std::uint32_t label) const {
  return static_cast<std::uint32_t>(label_order_.forward(label));
}

std::uint32_t ShardMap::label_of_neuron(std::uint32_t neuron) const {
  return static_cast<std::uint32_t>(label_order_.inverse(neuron));
}

std::uint32_t ShardMap::row_count(ShardId shard) const {
  if (!is_output(shard)) return features_ + 1;
  return is_wide() ? wide_rows_ : neurons(shard).size();
}

std::uint32_t ShardMap::row_width(ShardId shard) const {
  return weights_per_row(shard) + (is_output(shard) ? 1 : 0);
}

std::uint32_t ShardMap::weights_per_row(ShardId shard) const {
  if (!is_output(shard)) return neurons(shard).size();
  return is_wide() ? kWideWeights : hidden_;
}

std::uint32_t ShardMap::codes_per_row(ShardId shard) const {
  if (!is_output(shard)) return 0;
  return is_wide() ? 1 + kWideWeights : tables_;
}

}  // namespace gleaner
