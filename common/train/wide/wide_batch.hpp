// A batch for all wide shards: prepared once, then read by any thread. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/train/aligned_vector.hpp"

namespace gleaner {

struct WideBatch {
  struct Label {
    std::uint32_t neuron = 0;
    std::uint32_t example = 0;
    friend auto operator<=>(const Label&, const Label&) = default;
  };

  BatchIndex batch = 0;
  // Where each example's features end. Features ascend, are known to the model, and have unit
  // length before feature dropout.
  std::vector<std::uint32_t> ends;
  AlignedVector<std::uint32_t> features;
  AlignedVector<float> values;
  // True labels, as output neurons: ascending by neuron, then example.
  std::vector<Label> labels;

  [[nodiscard]] std::uint32_t examples() const { return static_cast<std::uint32_t>(ends.size()); }

  [[nodiscard]] std::uint32_t begin(std::uint32_t example) const {
    return example == 0 ? 0 : ends[example - 1];
  }

  // The example, without labels.
  [[nodiscard]] ExampleView example(std::uint32_t index) const {
    const std::size_t first = begin(index);
    const std::size_t count = ends[index] - first;
    return {{}, std::span(features).subspan(first, count), std::span(values).subspan(first, count)};
  }

  [[nodiscard]] std::uint64_t memory_bytes() const;
};

// `examples`: in the order of the batch, with output neurons as labels.
WideBatch prepare_training(const ModelConfig& config, BatchIndex batch,
                           std::span<const ExampleView> examples);
// Examples to be scored: no feature is left out, and there are no labels.
WideBatch prepare_test(const ModelConfig& config, std::span<const ExampleView> examples);

}  // namespace gleaner
