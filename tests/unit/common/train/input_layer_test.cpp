#include "common/train/input_layer.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/prepared_examples.hpp"
#include "tests/unit/common/train/input_examples.hpp"
#include "tests/unit/common/train/input_replica.hpp"
#include "tests/unit/common/train/slow_layer.hpp"

namespace gleaner {

TEST_CASE("input layer: codes are the sums, rectified in ReLU units, in as many steps as bits have",
          "[input_layer]") {
  ModelConfig config = input_test_config();
  config.activation_bits = GENERATE(8u, 5u);
  config.hidden_units = GENERATE(HiddenUnits::kRelu, HiddenUnits::kLinear);
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const SlowLayer slow(config);
  const InputExamples examples = make_input_examples(3, 40, config.features, 60);
  const QuantizedActivations codes = layer.forward(examples.views, std::nullopt);
  REQUIRE(codes.examples == 40);
  REQUIRE(codes.hidden == 64);
  REQUIRE(codes.bits == config.activation_bits);
  bool some_empty = false;
  for (std::size_t e = 0; e < 40; ++e) {
    int largest = 0;
    for (std::size_t j = 0; j < 64; ++j) {
      const double expected = slow.activation(examples.views[e], j);
      const int code = static_cast<std::int8_t>(codes.codes[e * 64 + j]);
      const float rounding = codes.scales[e] * 0.5001F + 1e-6F;
      REQUIRE(std::abs(codes.scales[e] * static_cast<float>(code) - expected) <= rounding);
      largest = std::max(largest, std::abs(code));
    }
    const bool is_empty = examples.features[e].empty();
    some_empty = some_empty || is_empty;
    REQUIRE(largest == (is_empty ? 0 : static_cast<int>(code_max(config.activation_bits))));
    REQUIRE((codes.scales[e] == 0.0F) == is_empty);
  }
  REQUIRE(some_empty);
}

TEST_CASE("input layer: an update is the row-wise rule applied to the masked gradient",
          "[input_layer]") {
  ModelConfig config = input_test_config();
  config.hidden_units = GENERATE(HiddenUnits::kRelu, HiddenUnits::kLinear);
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  SlowLayer slow(config);
  InputReplica replica(config, 0);
  for (BatchIndex batch = 0; batch < 3; ++batch) {
    const InputExamples examples = make_input_examples(batch, 24, config.features, 40);
    const QuantizedActivations codes = layer.forward(examples.views, batch);
    const auto gradient = make_gradient(batch, codes);
    layer.backward(batch, config.input_rate, examples.views, codes, gradient);
    slow.backward(examples.views, codes, gradient, config.input_rate);
  }
  const ShardRows before = replica.rows;
  replica.apply(layer.commit(replica.shard));
  std::size_t changed = 0;
  for (std::size_t row = 0; row <= config.features; ++row) {
    REQUIRE(replica.rows.states[row] == Approx(slow.states[row]).epsilon(1e-5));
    changed += replica.rows.states[row] != 0.0F;
    const auto before_row = std::span(before.values).subspan(row * config.hidden, config.hidden);
    double largest = 0;
    for (std::size_t j = 0; j < config.hidden; ++j) {
      largest = std::max(largest, std::abs(slow.weights[row][j] - before_row[j]));
    }
    for (std::size_t j = 0; j < config.hidden; ++j) {
      // A committed value is within half a level.
      const double wrong = replica.rows.values[row * config.hidden + j] - slow.weights[row][j];
      REQUIRE(std::abs(wrong) <= largest * 0.505 / kDeltaLevelMax + 1e-5);
    }
  }
  REQUIRE(changed > 100);
  REQUIRE(changed < config.features);
}

TEST_CASE("input layer: the gradient agrees with finite differences of the loss", "[input_layer]") {
  ModelConfig config = input_test_config();
  config.hidden_units = GENERATE(HiddenUnits::kRelu, HiddenUnits::kLinear);
  SlowLayer slow(config);
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const InputExamples examples = make_input_examples(8, 24, config.features, 40);
  const QuantizedActivations codes = layer.forward(examples.views, 0);
  std::vector<std::int32_t> gradient = make_gradient(8, codes);
  layer.backward(0, config.input_rate, examples.views, codes, gradient);
  InputReplica replica(config, 0);
  const ShardRows before = replica.rows;
  replica.apply(layer.commit(replica.shard));
  // A loss whose gradient with respect to h is `gradient`: their inner product.
  const auto loss = [&] {
    double sum = 0;
    for (std::size_t e = 0; e < examples.views.size(); ++e) {
      for (std::size_t j = 0; j < config.hidden; ++j) {
        const std::size_t at = e * config.hidden + j;
        if (codes.codes[at] == 0) continue;  // off, or rounded down to off
        sum += gradient[at] * std::exp2(config.gradient_step_log2) *
               slow.activation(examples.views[e], j);
      }
    }
    return sum;
  };
  const auto applied = [&](std::uint32_t row, std::size_t unit) {
    const std::size_t at = row * config.hidden + unit;
    return double{before.values[at]} - replica.rows.values[at];
  };
  const auto slope = [&](std::uint32_t row, std::size_t unit) {
    constexpr double kStep = 1e-7;  // small enough to stay clear of the relu's corner
    slow.weights[row][unit] += kStep;
    const double above = loss();
    slow.weights[row][unit] -= 2 * kStep;
    const double below = loss();
    slow.weights[row][unit] += kStep;
    return (above - below) / (2 * kStep);
  };
  for (const std::uint32_t row : {examples.features[1].at(0), examples.features[2].at(1),
                                  examples.features[5].at(2), config.features}) {
    // A commit keeps a row's largest change as it is, and the others to half a level.
    std::size_t unit = 0;
    for (std::size_t j = 1; j < config.hidden; ++j) {
      if (std::abs(slope(row, j)) > std::abs(slope(row, unit))) unit = j;
    }
    const double expected = slope(row, unit);
    // The first step from state 0, undone: g = -(w' - w) (sqrt(v) + epsilon) / rate.
    const double actual =
        applied(row, unit) * std::sqrt(replica.rows.states[row]) / config.input_rate;
    REQUIRE(std::abs(expected) > 1e-3);
    REQUIRE(actual == Approx(expected).epsilon(2e-3).margin(1e-5));
  }
}

TEST_CASE("input layer: thread count and instruction set leave no trace", "[input_layer]") {
  ModelConfig config = input_test_config();
  config.hidden = 192;  // full blocks of every kernel and a remainder
  config.dropout = 0.3F;
  config.feature_dropout = 0.2F;
  config.input_shards = 2;
  std::optional<Trace> reference;
  for (const SimdLevel level : available_simd_levels()) {
    for (const unsigned threads : {1u, 2u, 3u}) {
      ThreadPool pool(threads);
      InputLayer layer(config, pool, kernels_for(level));
      const Trace trace = train(layer, config, 0, 9);
      if (!reference) reference = trace;
      REQUIRE(trace == *reference);
    }
  }
}

TEST_CASE("input layer: the number of shards does not change the forward pass", "[input_layer]") {
  ModelConfig config = input_test_config();
  ThreadPool pool(1);
  const InputExamples examples = make_input_examples(4, 50, config.features, 60);
  std::optional<QuantizedActivations> reference;
  for (const std::uint32_t shards : {1u, 2u, 4u}) {
    config.input_shards = shards;
    InputLayer layer(config, pool);
    const QuantizedActivations codes = layer.forward(examples.views, 5);
    if (!reference) reference = codes;
    REQUIRE(codes == *reference);
  }
}

TEST_CASE("input layer: a layer loaded from commits continues with the same bits",
          "[input_layer]") {
  ModelConfig config = input_test_config();
  config.input_shards = 2;
  ThreadPool pool(1);
  InputLayer live(config, pool);
  std::vector<InputReplica> replicas{{config, 0}, {config, 1}};
  const Trace first = train(live, config, 0, 8);
  REQUIRE(first.commits.size() == 4);
  for (std::size_t c = 0; c < first.commits.size(); ++c) replicas[c % 2].apply(first.commits[c]);
  InputLayer loaded(config, pool);
  for (const InputReplica& replica : replicas) {
    REQUIRE(loaded.load_rows(replica.shard, replica.rows).ok());
  }
  REQUIRE(train(loaded, config, 8, 16) == train(live, config, 8, 16));
}

TEST_CASE("input layer: loading forgets what was not committed", "[input_layer]") {
  const ModelConfig config = input_test_config();
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  (void)train(layer, config, 0, 2);  // stops in the middle of a round
  const InputReplica initial(config, 0);
  REQUIRE(layer.load_rows(initial.shard, initial.rows).ok());
  InputLayer fresh(config, pool);
  const Trace expected = train(fresh, config, 0, 4);
  const Trace actual = train(layer, config, 0, 4);
  REQUIRE(actual.codes == expected.codes);
  InputReplica one(config, 0);
  InputReplica other(config, 0);
  one.apply(expected.commits.at(0));
  other.apply(actual.commits.at(0));
  REQUIRE(one.rows == other.rows);
}

TEST_CASE("input layer: rows that cannot be loaded are refused and change nothing",
          "[input_layer]") {
  const ModelConfig config = input_test_config();
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const ShardId shard = ShardMap(config).input_shard(0);
  ShardRows rows;
  rows.rows = {0, 501};
  rows.values.assign(128, 1.0F);
  rows.states = {1.0F, 1.0F};
  const Result<void> beyond = layer.load_rows(shard, rows);
  REQUIRE(beyond.error().code == ErrorCode::kCorrupt);
  REQUIRE_THAT(beyond.error().message, Catch::Matchers::Contains("501"));
  rows.rows = {0, 1};
  rows.values.resize(127);
  REQUIRE_FALSE(layer.load_rows(shard, rows).ok());
  rows.values.resize(128);
  rows.states.resize(1);
  REQUIRE_FALSE(layer.load_rows(shard, rows).ok());
  InputLayer untouched(config, pool);
  const InputExamples examples = make_input_examples(4, 50, config.features, 60);
  REQUIRE(layer.forward(examples.views, 0) == untouched.forward(examples.views, 0));
}

TEST_CASE("input layer: a commit has ascending rows in parts, and at least one part",
          "[input_layer]") {
  ModelConfig config = input_test_config();
  config.features = 4000;
  config.hidden = 512;
  ThreadPool pool(2);
  InputLayer layer(config, pool);
  const ShardId shard = ShardMap(config).input_shard(0);
  const std::vector<SparseUpdate> none = layer.commit(shard);
  REQUIRE(none.size() == 1);
  REQUIRE(none[0].rows.empty());
  const InputExamples examples = make_input_examples(2, 100, config.features, 60);
  const QuantizedActivations codes = layer.forward(examples.views, 0);
  layer.backward(0, config.input_rate, examples.views, codes, make_gradient(2, codes));
  const std::vector<SparseUpdate> parts = layer.commit(shard);
  REQUIRE(parts.size() >= 2);
  std::int64_t previous = -1;
  for (const SparseUpdate& part : parts) {
    REQUIRE(part.levels.size() == part.rows.size() * 512);
    REQUIRE(part.scales.size() == part.rows.size());
    REQUIRE(part.biases.empty());
    REQUIRE(part.states.size() == part.rows.size());
    REQUIRE(part.rows.size() * 524 <= std::size_t{1} << 20);
    for (const std::uint32_t row : part.rows) {
      REQUIRE(std::int64_t{row} > previous);
      previous = row;
    }
  }
  REQUIRE(previous == 4000);  // the bias row
  REQUIRE(layer.commit(shard)[0].rows.empty());
}

TEST_CASE("input layer: dropout zeroes its share of units and scales up the others",
          "[input_layer]") {
  ModelConfig config = input_test_config();
  config.hidden = 256;
  config.dropout = 0.25F;
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const InputExamples examples = make_input_examples(6, 200, config.features, 60);
  const QuantizedActivations whole = layer.forward(examples.views, std::nullopt);
  const QuantizedActivations dropped = layer.forward(examples.views, 7);
  double on = 0;
  double kept = 0;
  for (std::size_t i = 0; i < whole.codes.size(); ++i) {
    const std::size_t e = i / 256;
    const double before = double{whole.scales[e]} * whole.codes[i];
    const double after = double{dropped.scales[e]} * dropped.codes[i];
    if (whole.codes[i] > 4) {
      ++on;
      kept += dropped.codes[i] != 0;
    }
    if (dropped.codes[i] != 0) {
      const double rounding = whole.scales[e] + dropped.scales[e];
      REQUIRE(std::abs(after - before / 0.75) <= rounding);
    }
  }
  REQUIRE(on > 20'000);
  REQUIRE(kept / on == Approx(0.75).margin(0.015));  // 5 sigma
  REQUIRE(layer.forward(examples.views, 7) == dropped);
  REQUIRE_FALSE(layer.forward(examples.views, 8).codes == dropped.codes);
  REQUIRE(layer.forward(examples.views, std::nullopt) == whole);
}

TEST_CASE("input layer: features left out take no part in the step, and evaluation sees all",
          "[input_layer]") {
  ModelConfig config = input_test_config();
  config.feature_dropout = 0.5F;
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  FeatureDropout dropout(config);
  const InputExamples examples = make_input_examples(6, 3, config.features, 20);
  const std::span<const ExampleView> thinned = dropout.apply(5, examples.views);
  const QuantizedActivations codes = layer.forward(examples.views, 5);
  REQUIRE(codes == layer.forward(thinned, std::nullopt));
  REQUIRE_FALSE(codes == layer.forward(examples.views, std::nullopt));
  layer.backward(5, config.input_rate, examples.views, codes, make_gradient(1, codes));
  std::set<std::uint32_t> expected = {config.features};  // the bias row
  for (const ExampleView& example : thinned) {
    expected.insert(example.features.begin(), example.features.end());
  }
  const auto parts = layer.commit(ShardMap(config).input_shard(0));
  const std::vector<std::uint32_t>& changed = parts.at(0).rows;
  REQUIRE(std::set<std::uint32_t>(changed.begin(), changed.end()) == expected);
}

TEST_CASE("input layer: features the training file does not know are ignored", "[input_layer]") {
  const ModelConfig config = input_test_config();
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const std::vector<std::uint32_t> features = {3, 77, 500, 9000};
  const std::vector<float> values = {0.5F, -0.25F, 3.0F, 4.0F};
  const std::vector<ExampleView> wide = {{{}, features, values}};
  const std::vector<ExampleView> known = {
      {{}, std::span(features).first(2), std::span(values).first(2)}};
  const QuantizedActivations codes = layer.forward(wide, 0);
  REQUIRE(codes == layer.forward(known, 0));
  layer.backward(0, config.input_rate, wide, codes, make_gradient(1, codes));
  const auto parts = layer.commit(ShardMap(config).input_shard(0));
  REQUIRE(parts.at(0).rows == std::vector<std::uint32_t>{3, 77, 500});
}

TEST_CASE("input layer: whatever the values, scales and weights stay finite", "[input_layer]") {
  ModelConfig config = input_test_config();
  config.gradient_step_log2 = 0;
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const std::vector<std::uint32_t> features = {1, 2, 3};
  const std::vector<float> huge = {3e38F, -3e38F, 3e38F};
  const std::vector<float> tiny = {1e-38F, 1e-38F, 1e-38F};
  const std::vector<ExampleView> examples = {{{}, features, huge}, {{}, features, tiny}};
  for (BatchIndex batch = 0; batch < 3; ++batch) {
    const QuantizedActivations codes = layer.forward(examples, batch);
    for (const float scale : codes.scales) REQUIRE(std::isfinite(scale));
    const std::vector<std::int32_t> gradient(codes.codes.size(),
                                             std::numeric_limits<std::int32_t>::max());
    layer.backward(batch, config.input_rate, examples, codes, gradient);
  }
  for (const SparseUpdate& part : layer.commit(ShardMap(config).input_shard(0))) {
    for (const float state : part.states) REQUIRE(std::isfinite(state));
    for (const float scale : part.scales) REQUIRE(is_delta_scale(scale));
  }
}

}  // namespace gleaner
