#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/model/shard_rows.hpp"

namespace gleaner {
namespace {

ModelConfig small() {
  ModelConfig config;
  config.points = 1'000'000;
  config.features = 300;
  config.labels = 40;
  config.hidden = 64;
  config.output_shards = 4;
  config.input_shards = 2;
  return config;
}

std::vector<float> row_of(const ModelConfig& config, ShardId shard, std::uint32_t row,
                          std::uint32_t label_count = 0) {
  const ShardMap map(config);
  std::vector<float> values(map.row_width(shard));
  initial_row(config, map, shard, row, label_count, values);
  return values;
}

}  // namespace

TEST_CASE("initial weights: the output bias is the log-odds of the label, between -8 and -7.5",
          "[initial_weights]") {
  ModelConfig config = small();
  for (const std::uint64_t points : {1u, 2u, 1000u, 1'000'000u, 4'000'000'000u}) {
    config.points = points;
    for (const std::uint64_t count : {0u, 1u, 2u, 3u, 499u, 500u, 999u, 1000u, 123'456u}) {
      if (count > points) continue;
      const double expected = std::log((static_cast<double>(count) + 0.5) /
                                       (static_cast<double>(points - count) + 0.5));
      const float bias = row_of(config, ShardId{1}, 3, static_cast<std::uint32_t>(count)).back();
      REQUIRE(bias == Approx(std::clamp(expected, -8.0, -7.5)).margin(1e-6).epsilon(1e-7));
    }
  }
}

TEST_CASE("initial weights: the log-odds have these bits on every machine", "[initial_weights]") {
  const auto bits = [](float value) {
    std::uint32_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    return word;
  };
  ModelConfig config = small();
  config.points = 45'000;
  REQUIRE(bits(row_of(config, ShardId{0}, 0, 17).back()) == 0xc0fb425bu);
  REQUIRE(bits(row_of(config, ShardId{2}, 5)[9]) == 0xbdf8bbbeu);
  REQUIRE(bits(row_of(config, ShardId{5}, 17)[30]) == 0xbf16b14au);
}

TEST_CASE("initial weights: a value depends on neuron and unit, not on how layers are cut",
          "[initial_weights]") {
  ModelConfig whole = small();
  whole.output_shards = 1;
  whole.input_shards = 1;
  const ModelConfig cut = small();
  const ShardMap map(cut);
  for (std::uint32_t neuron = 0; neuron < cut.labels; ++neuron) {
    const ShardId shard = map.shard_of_neuron(neuron);
    REQUIRE(row_of(whole, ShardId{0}, neuron, 9) ==
            row_of(cut, shard, neuron - map.neurons(shard).begin, 9));
  }
  for (std::uint32_t row = 0; row <= cut.features; ++row) {
    std::vector<float> joined = row_of(cut, map.input_shard(0), row);
    const std::vector<float> right = row_of(cut, map.input_shard(1), row);
    joined.insert(joined.end(), right.begin(), right.end());
    REQUIRE(row_of(whole, ShardId{1}, row) == joined);
  }
}

TEST_CASE("initial weights: spread as configured, bias row zero, another seed differs",
          "[initial_weights]") {
  ModelConfig config = small();
  config.input_scale = 0.5F;
  config.output_scale = 2.0F;
  const ShardMap map(config);
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::uint32_t row = 0; row < config.features; ++row) {
    for (const float value : row_of(config, map.input_shard(0), row)) {
      sum += value;
      squares += double{value} * value;
      ++count;
    }
  }
  REQUIRE(std::abs(sum / count) < 0.02);  // 4 sigma of the mean of 9600 values
  REQUIRE(std::sqrt(squares / count) == Approx(0.5).epsilon(0.02));
  for (const float value : row_of(config, map.input_shard(1), config.features)) {
    REQUIRE(value == 0.0F);
  }
  float largest = 0;
  for (std::uint32_t row = 0; row < map.row_count(ShardId{0}); ++row) {
    std::vector<float> values = row_of(config, ShardId{0}, row);
    values.pop_back();
    for (const float value : values) largest = std::max(largest, std::abs(value));
  }
  REQUIRE(largest <= 0.25F);
  REQUIRE(largest > 0.24F);
  ModelConfig other = config;
  other.seed = 2;
  REQUIRE(row_of(config, ShardId{0}, 0) != row_of(other, ShardId{0}, 0));
  REQUIRE(row_of(config, ShardId{0}, 0) != row_of(config, ShardId{0}, 1));
}

}  // namespace gleaner
