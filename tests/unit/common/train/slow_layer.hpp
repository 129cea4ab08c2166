// The input layer in double, one neuron and one feature at a time, and what a layer answered.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/prepared_examples.hpp"
#include "tests/unit/common/train/input_examples.hpp"
#include "tests/unit/common/train/input_replica.hpp"

namespace gleaner {

// The layer in double, one neuron and one feature at a time. State is kept per input shard.
struct SlowLayer {
  ModelConfig config;
  std::vector<std::vector<double>> weights;  // row, unit
  std::vector<double> states;

  explicit SlowLayer(const ModelConfig& model)
      : config(model), states(model.features + std::size_t{1}, 0.0) {
    const InputReplica replica(model, 0);
    for (std::size_t row = 0; row <= model.features; ++row) {
      const auto begin =
          replica.rows.values.begin() + static_cast<std::ptrdiff_t>(row * model.hidden);
      weights.emplace_back(begin, begin + model.hidden);
    }
  }

  [[nodiscard]] double activation(const ExampleView& example, std::size_t unit) const {
    double sum = weights.back()[unit];
    for (std::size_t i = 0; i < example.features.size(); ++i) {
      sum += double{example.values[i]} * weights[example.features[i]][unit];
    }
    return config.hidden_units == HiddenUnits::kRelu ? std::max(0.0, sum) : sum;
  }

  // Sum over the examples that have `row` of x * dh, masked.
  [[nodiscard]] std::vector<double> row_gradient(std::span<const ExampleView> examples,
                                                 const QuantizedActivations& codes,
                                                 std::span<const std::int32_t> gradient,
                                                 std::uint32_t row, bool& occurs) const {
    std::vector<double> sum(config.hidden, 0.0);
    occurs = row == config.features;
    for (std::size_t e = 0; e < examples.size(); ++e) {
      double x = row == config.features ? 1.0 : 0.0;
      for (std::size_t i = 0; i < examples[e].features.size(); ++i) {
        if (examples[e].features[i] != row) continue;
        x = examples[e].values[i];
        occurs = true;
      }
      for (std::size_t j = 0; j < config.hidden; ++j) {
        const std::size_t at = e * config.hidden + j;
        if (codes.codes[at] != 0) sum[j] += x * gradient[at] * std::exp2(config.gradient_step_log2);
      }
    }
    return sum;
  }

  void backward(std::span<const ExampleView> examples, const QuantizedActivations& codes,
                std::span<const std::int32_t> gradient, double rate) {
    for (std::uint32_t row = 0; row <= config.features; ++row) {
      bool occurs = false;
      const std::vector<double> g = row_gradient(examples, codes, gradient, row, occurs);
      if (!occurs) continue;
      double squares = 0;
      for (const double value : g) squares += value * value;
      const double decay = config.second_moment_decay;
      const double share = states[row] == 0 ? kFirstFraction : 1 - decay;
      states[row] = decay * states[row] + share * squares / config.hidden;
      for (std::size_t j = 0; j < config.hidden; ++j) {
        weights[row][j] -= rate * g[j] / (std::sqrt(states[row]) + config.epsilon);
      }
    }
  }
};

// Everything a few rounds of training make visible.
struct Trace {
  std::vector<QuantizedActivations> codes;
  std::vector<std::vector<SparseUpdate>> commits;
  friend bool operator==(const Trace&, const Trace&) = default;
};

inline Trace train(InputLayer& layer, const ModelConfig& config, BatchIndex first,
                   BatchIndex last) {
  const RunPlan plan(config);
  const ShardMap map(config);
  Trace trace;
  for (BatchIndex batch = first; batch < last; ++batch) {
    const InputExamples examples =
        make_input_examples(batch, config.batch_examples, config.features, 40);
    trace.codes.push_back(layer.forward(examples.views, batch));
    layer.backward(batch, config.input_rate, examples.views, trace.codes.back(),
                   make_gradient(batch, trace.codes.back()));
    if (!plan.is_round_end(batch + 1)) continue;
    for (std::uint32_t s = 0; s < map.input_shards(); ++s) {
      trace.commits.push_back(layer.commit(map.input_shard(s)));
    }
  }
  return trace;
}

}  // namespace gleaner
