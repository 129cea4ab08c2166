// Input shards by themselves: what several layers that hold some of them compute is what one layer
// that holds all of them does.
#include <catch2/catch.hpp>
#include <optional>

#include "common/model/shard_map.hpp"
#include "common/train/input_layer.hpp"
#include "tests/unit/common/train/input_examples.hpp"
#include "tests/unit/common/train/input_replica.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kShards = 4;

// 4 shards of 16 units, both kinds of dropout.
ModelConfig split_config() {
  ModelConfig config = input_test_config();
  config.input_shards = kShards;
  config.dropout = 0.25F;
  config.feature_dropout = 0.2F;
  return config;
}

std::vector<ShardId> shards_of(const ModelConfig& config, std::vector<std::uint32_t> places) {
  const ShardMap map(config);
  std::vector<ShardId> shards;
  for (const std::uint32_t place : places) shards.push_back(map.input_shard(place));
  return shards;
}

InputExamples examples_of(const ModelConfig& config, BatchIndex batch) {
  return make_input_examples(batch, config.batch_examples, config.features, 40);
}

// Batches [first, last) as one layer does them, on all shards.
void train_batches(InputLayer& layer, const ModelConfig& config, BatchIndex first,
                   BatchIndex last) {
  for (BatchIndex batch = first; batch < last; ++batch) {
    const InputExamples examples = examples_of(config, batch);
    const QuantizedActivations codes = layer.forward(examples.views, batch);
    layer.backward(batch, config.input_rate, examples.views, codes, make_gradient(batch, codes));
  }
}

// Copies the columns of these shards.
void copy_units(const ModelConfig& config, const std::vector<ShardId>& shards,
                const std::vector<float>& from, std::vector<float>& to) {
  const ShardMap map(config);
  to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); i += config.hidden) {
    for (const ShardId shard : shards) {
      const NeuronRange units = map.neurons(shard);
      for (std::size_t j = units.begin; j < units.end; ++j) to[i + j] = from[i + j];
    }
  }
}

void require_same_commits(InputLayer& a, InputLayer& b, const std::vector<ShardId>& shards) {
  for (const ShardId shard : shards) {
    const std::vector<SparseUpdate> update = a.commit(shard);
    REQUIRE_FALSE(update.at(0).rows.empty());
    REQUIRE(update == b.commit(shard));
  }
}

}  // namespace

TEST_CASE("input shards: activations, then codes, are the forward pass", "[input_shards]") {
  const ModelConfig config = split_config();
  ThreadPool pool(2);
  InputLayer layer(config, pool);
  train_batches(layer, config, 0, 2);
  const ActivationQuantizer coder(config, pool);
  const InputExamples examples = examples_of(config, 2);
  const std::vector<ShardId> all = shards_of(config, {0, 1, 2, 3});
  for (const auto batch : {std::optional<BatchIndex>(2), std::optional<BatchIndex>()}) {
    std::vector<float> activations = layer.activations(examples.views, batch, all);
    REQUIRE(coder.encode(activations, batch) == layer.forward(examples.views, batch));
  }
}

TEST_CASE("input shards: activations come together from layers that hold some of them",
          "[input_shards]") {
  const ModelConfig config = split_config();
  ThreadPool pool(1);
  InputLayer whole(config, pool);
  train_batches(whole, config, 0, 2);
  const ActivationQuantizer coder(config, pool);
  const InputExamples examples = examples_of(config, 2);
  std::vector<float> together;
  for (const auto& places : {std::vector<std::uint32_t>{1, 3}, std::vector<std::uint32_t>{0},
                             std::vector<std::uint32_t>{2}}) {
    const std::vector<ShardId> own = shards_of(config, places);
    InputLayer part(config, pool, InputLayer::NoShards{});
    for (const ShardId shard : own) {
      part.hold(shard);
      for (const ShardRows& rows : whole.touched_rows(shard)) {
        REQUIRE(part.load_touched_rows(shard, rows).ok());
      }
    }
    copy_units(config, own, part.activations(examples.views, 2, own), together);
    // Compares the same units from a layer that holds the others too.
    std::vector<float> subset(together.size());
    std::vector<float> expected(together.size());
    copy_units(config, own, whole.activations(examples.views, 2, own), subset);
    copy_units(config, own, together, expected);
    REQUIRE(subset == expected);
  }
  REQUIRE(coder.encode(together, 2) == whole.forward(examples.views, 2));
}

TEST_CASE("input shards: an example's codes do not depend on who encodes it", "[input_shards]") {
  const ModelConfig config = split_config();
  ThreadPool pool(3);
  const ActivationQuantizer coder(config, pool);
  Rng rng(1, Purpose::kTest);
  std::vector<float> activations(std::size_t{9} * config.hidden);
  for (std::size_t i = config.hidden; i < activations.size(); ++i) {  // the first is all off
    activations[i] = std::max(0.0F, signed_unit(rng.next()));
  }
  std::vector<float> one_by_one = activations;
  const QuantizedActivations codes = coder.encode(activations, 4);
  REQUIRE(codes.examples == 9);
  REQUIRE(codes.scales[0] == 0.0F);
  for (std::size_t e = 0; e < 9; ++e) {
    std::vector<std::uint8_t> own(config.hidden);
    const auto units = std::span(one_by_one).subspan(e * config.hidden, config.hidden);
    REQUIRE(coder.encode(units, 4, e, own.data()) == codes.scales[e]);
    REQUIRE(std::equal(own.begin(), own.end(),
                       codes.codes.begin() + static_cast<std::ptrdiff_t>(e * config.hidden)));
  }
}

TEST_CASE("input shards: updated one after the other they are as updated together",
          "[input_shards]") {
  const ModelConfig config = split_config();
  ThreadPool pool(2);
  InputLayer together(config, pool);
  InputLayer apart(config, pool);
  for (BatchIndex batch = 0; batch < 3; ++batch) {
    const InputExamples examples = examples_of(config, batch);
    const QuantizedActivations codes = together.forward(examples.views, batch);
    REQUIRE(apart.forward(examples.views, batch) == codes);
    const std::vector<std::int32_t> gradient = make_gradient(batch, codes);
    together.backward(batch, config.input_rate, examples.views, codes, gradient);
    for (const auto& places : {std::vector<std::uint32_t>{2}, std::vector<std::uint32_t>{0, 3},
                               std::vector<std::uint32_t>{1}}) {
      const std::vector<ShardId> own = shards_of(config, places);
      // Nothing of the others' columns counts.
      QuantizedActivations own_codes = codes;
      std::vector<std::int32_t> own_gradient = gradient;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const auto place =
            static_cast<std::uint32_t>(i % config.hidden / (config.hidden / kShards));
        if (std::find(places.begin(), places.end(), place) != places.end()) continue;
        own_codes.codes[i] = 1;
        own_gradient[i] = 1 << 20;
      }
      apart.backward(batch, config.input_rate, examples.views, own_codes, own_gradient, own);
    }
  }
  const std::vector<ShardId> all = shards_of(config, {0, 1, 2, 3});
  for (const ShardId shard : all) {
    REQUIRE(together.touched_rows(shard) == apart.touched_rows(shard));
  }
  require_same_commits(together, apart, all);
}

TEST_CASE("input shards: stepped back to a commit, they train on to the same commits",
          "[input_shards]") {
  const ModelConfig config = split_config();
  ThreadPool pool(2);
  InputLayer layer(config, pool, InputLayer::NoShards{2});
  const std::vector<ShardId> all = shards_of(config, {0, 1, 2, 3});
  for (const ShardId shard : all) layer.hold(shard);
  const auto round = [&](BatchIndex index) {
    train_batches(layer, config, 2 * index, 2 * index + 2);
    std::vector<std::vector<SparseUpdate>> commits;
    for (const ShardId shard : all) commits.push_back(layer.commit(shard));
    return commits;
  };
  const auto digests = [&] {
    std::vector<ShardDigest> list;
    for (const ShardId shard : all) list.push_back(layer.digest(shard));
    return list;
  };
  const auto step_back = [&](std::uint32_t commits) {
    bool has_stepped = true;
    for (const ShardId shard : all) has_stepped &= layer.step_back(shard, commits);
    return has_stepped;
  };
  std::vector<std::vector<ShardDigest>> at{digests()};
  REQUIRE(at[0][0] == ShardDigest{});  // nothing is stored
  std::vector<std::vector<std::vector<SparseUpdate>>> commits;
  for (BatchIndex r = 0; r < 4; ++r) {
    commits.push_back(round(r));
    at.push_back(digests());
    REQUIRE(at[r + 1][0].rows >= at[r][0].rows);
    REQUIRE(at[r + 1] != at[r]);
  }
  REQUIRE_FALSE(step_back(3));
  REQUIRE(digests() == at[4]);
  REQUIRE(step_back(2));
  REQUIRE(digests() == at[2]);
  REQUIRE(round(2) == commits[2]);
  REQUIRE(digests() == at[3]);
  // In the middle of a round.
  train_batches(layer, config, 6, 7);
  REQUIRE(step_back(1));
  REQUIRE(digests() == at[2]);
  REQUIRE(round(2) == commits[2]);
  REQUIRE(round(3) == commits[3]);
  REQUIRE(digests() == at[4]);
}

TEST_CASE("input shards: touched rows loaded elsewhere go on to the same commit",
          "[input_shards]") {
  const ModelConfig config = split_config();
  ThreadPool pool(1);
  InputLayer first(config, pool);
  std::vector<InputReplica> store;
  for (std::uint32_t s = 0; s < kShards; ++s) store.emplace_back(config, s);
  train_batches(first, config, 0, 4);
  for (InputReplica& shard : store) shard.apply(first.commit(shard.shard));
  train_batches(first, config, 4, 6);  // stops within the second round

  InputLayer second(config, pool, InputLayer::NoShards{});
  for (const InputReplica& shard : store) {
    second.hold(shard.shard);
    REQUIRE(second.load_rows(shard.shard, shard.rows).ok());
    const std::vector<ShardRows> touched = first.touched_rows(shard.shard);
    for (const ShardRows& rows : touched) {
      REQUIRE_FALSE(rows.rows.empty());
      REQUIRE(std::is_sorted(rows.rows.begin(), rows.rows.end()));
      REQUIRE(rows.stale_codes == std::vector<std::uint8_t>(rows.rows.size(), 0));
      REQUIRE(second.load_touched_rows(shard.shard, rows).ok());
    }
    REQUIRE(second.touched_rows(shard.shard) == touched);
  }
  train_batches(first, config, 6, 8);
  train_batches(second, config, 6, 8);
  const std::vector<ShardId> all = shards_of(config, {0, 1, 2, 3});
  require_same_commits(first, second, all);
  // Both have adopted the same rounded rows.
  const InputExamples examples = examples_of(config, 8);
  REQUIRE(first.forward(examples.views, 8) == second.forward(examples.views, 8));
  for (const ShardId shard : all) {
    const std::vector<ShardRows> none = second.touched_rows(shard);
    REQUIRE(none.size() == 1);
    REQUIRE(none[0].rows.empty());
  }
}

TEST_CASE("input shards: touched rows come in parts that fit a message", "[input_shards]") {
  ModelConfig config = input_test_config();
  config.features = 4000;
  config.hidden = 512;
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const InputExamples examples = make_input_examples(2, 100, config.features, 60);
  const QuantizedActivations codes = layer.forward(examples.views, 0);
  layer.backward(0, config.input_rate, examples.views, codes, make_gradient(2, codes));
  const ShardId shard = ShardMap(config).input_shard(0);
  const std::vector<ShardRows> parts = layer.touched_rows(shard);
  REQUIRE(parts.size() >= 2);
  std::int64_t previous = -1;
  for (const ShardRows& part : parts) {
    REQUIRE(part.rows.size() * 514 * sizeof(float) <= std::size_t{128} << 10);
    for (const std::uint32_t row : part.rows) {
      REQUIRE(std::int64_t{row} > previous);
      previous = row;
    }
  }
  REQUIRE(previous == 4000);
}

TEST_CASE("input shards: touched rows that cannot be loaded are refused and change nothing",
          "[input_shards]") {
  const ModelConfig config = input_test_config();
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const ShardId shard = ShardMap(config).input_shard(0);
  ShardRows rows;
  rows.rows = {0, 501};
  rows.values.assign(128, 1.0F);
  rows.states = {1.0F, 1.0F};
  REQUIRE(layer.load_touched_rows(shard, rows).error().code == ErrorCode::kCorrupt);
  rows.rows = {0, 1};
  rows.states.pop_back();
  REQUIRE_FALSE(layer.load_touched_rows(shard, rows).ok());
  REQUIRE(layer.touched_rows(shard).at(0).rows.empty());
}

TEST_CASE("input shards: one that is held again is the initial one, one dropped takes no memory",
          "[input_shards]") {
  const ModelConfig config = split_config();
  ThreadPool pool(1);
  InputLayer layer(config, pool);
  const std::vector<ShardId> all = shards_of(config, {0, 1, 2, 3});
  train_batches(layer, config, 0, 2);
  for (const ShardId shard : all) layer.hold(shard);
  InputLayer fresh(config, pool);
  const InputExamples examples = examples_of(config, 2);
  REQUIRE(layer.forward(examples.views, 2) == fresh.forward(examples.views, 2));
  const std::uint64_t held = layer.memory_bytes();
  layer.drop(all[1]);
  REQUIRE(layer.memory_bytes() == held / kShards * 3);
  for (const ShardId shard : all) layer.drop(shard);
  REQUIRE(layer.memory_bytes() == 0);
}

}  // namespace gleaner
