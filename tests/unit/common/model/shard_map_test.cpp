#include "common/model/shard_map.hpp"

#include <catch2/catch.hpp>

namespace gleaner {

TEST_CASE("shard map: ranges tile the layer and agree with the lookup", "[shard_map]") {
  for (const std::uint32_t labels : {7u, 16u, 17u, 1000u, 4271u}) {
    ModelConfig config;
    config.points = 1;
    config.features = 5;
    config.labels = labels;
    config.output_shards = 7;
    config.hidden = 64;
    config.input_shards = 2;
    const ShardMap map(config);
    std::uint32_t next = 0;
    for (std::uint32_t s = 0; s < map.output_shards(); ++s) {
      const NeuronRange range = map.neurons(ShardId{s});
      REQUIRE(range.begin == next);
      REQUIRE(range.size() >= 1);
      for (std::uint32_t neuron = range.begin; neuron < range.end; ++neuron) {
        REQUIRE(map.shard_of_neuron(neuron) == ShardId{s});
      }
      next = range.end;
    }
    REQUIRE(next == labels);
    for (std::uint32_t label = 0; label < labels; ++label) {
      REQUIRE(map.label_of_neuron(map.neuron_of_label(label)) == label);
    }
  }
}

TEST_CASE("shard map: rows of output and input shards", "[shard_map]") {
  ModelConfig config;
  config.points = 1;
  config.features = 50;
  config.labels = 100;
  config.output_shards = 4;
  config.hidden = 64;
  config.input_shards = 2;
  config.tables = 11;
  const ShardMap map(config);
  REQUIRE(map.row_count(ShardId{0}) == 25);
  REQUIRE(map.row_width(ShardId{0}) == 65);
  REQUIRE(map.codes_per_row(ShardId{0}) == 11);
  const ShardId input = map.input_shard(1);
  REQUIRE_FALSE(map.is_output(input));
  REQUIRE(map.neurons(input).begin == 32);
  REQUIRE(map.row_count(input) == 51);
  REQUIRE(map.row_width(input) == 32);
  REQUIRE(map.codes_per_row(input) == 0);
}

}  // namespace gleaner
