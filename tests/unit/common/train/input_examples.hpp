// Random sparse examples and gradients for the input layer's tests.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/counter_random.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/model/model_config.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {

struct InputExamples {
  std::vector<std::vector<std::uint32_t>> features;
  std::vector<std::vector<float>> values;
  std::vector<ExampleView> views;

  InputExamples() = default;
  InputExamples(const InputExamples&) = delete;  // views point into the object
  InputExamples& operator=(const InputExamples&) = delete;
  InputExamples(InputExamples&&) = default;
  InputExamples& operator=(InputExamples&&) = default;
};

// `count` examples of up to `features_max` features each; some have none.
inline InputExamples make_input_examples(std::uint64_t seed, std::size_t count,
                                         std::uint32_t features, std::uint64_t features_max) {
  Rng rng(seed, Purpose::kTest);
  InputExamples made;
  made.features.resize(count);
  made.values.resize(count);
  for (std::size_t e = 0; e < count; ++e) {
    std::map<std::uint32_t, float> entries;
    for (std::uint64_t n = rng.next_below(features_max + 1); n > 0; --n) {
      entries[static_cast<std::uint32_t>(rng.next_below(features))] = signed_unit(rng.next());
    }
    for (const auto& [feature, value] : entries) {
      made.features[e].push_back(feature);
      made.values[e].push_back(value);
    }
  }
  for (std::size_t e = 0; e < count; ++e) {
    made.views.push_back({{}, made.features[e], made.values[e]});
  }
  return made;
}

// A gradient with entries also where codes are zero: those must be masked.
inline std::vector<std::int32_t> make_gradient(std::uint64_t seed,
                                               const QuantizedActivations& codes) {
  Rng rng(seed, Purpose::kTest, 1);
  std::vector<std::int32_t> gradient(codes.codes.size());
  for (auto& entry : gradient) entry = static_cast<std::int32_t>(rng.next_below(2001)) - 1000;
  return gradient;
}

inline ModelConfig input_test_config() {
  ModelConfig config;
  config.points = 1000;
  config.features = 500;
  config.labels = 100;
  config.hidden = 64;
  config.batch_examples = 24;
  config.round_batches = 4;
  config.input_rate = 0.01F;
  return config;
}

}  // namespace gleaner
