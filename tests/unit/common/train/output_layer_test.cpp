// Fused batches, and shards that are trained together.
#include <deque>

#include "tests/unit/common/train/shard_scene.hpp"

namespace gleaner {

TEST_CASE("output shard: fused batches give the bits of one after the other", "[output_shard]") {
  for (const Sampling sampling : {Sampling::kLsh, Sampling::kRandom, Sampling::kAll}) {
    ModelConfig config = test::small_config();
    config.labels = 3'000;
    config.output_shards = 3;
    config.sampling = sampling;
    config.active_cap = 600;
    const auto count = GENERATE(std::size_t{2}, std::size_t{3}, kFusedBatches);
    INFO(count << " batches, sampling " << static_cast<int>(sampling));
    ShardScene apart(config);
    std::vector<ShardOutcome> expected;
    std::vector<std::vector<std::int32_t>> steps;
    for (BatchIndex batch = 0; batch < count; ++batch) {
      expected.push_back(apart.train(batch));
      steps.push_back(apart.gradient());
    }

    ShardScene together(config);
    std::vector<QueryBatch> queries(count, QueryBatch(config, together.sim_hash.get()));
    std::vector<QuantizedActivations> hidden;
    std::vector<Positives> positives;
    std::vector<ShardBatch> batches;
    for (BatchIndex batch = 0; batch < count; ++batch) {
      together.prepare(batch);
      hidden.push_back(together.hidden);
      positives.push_back(together.positives);
    }
    for (BatchIndex batch = 0; batch < count; ++batch) {
      queries[batch].prepare(batch, hidden[batch], together.pool);
      batches.push_back({&queries[batch], &positives[batch], together.plan.rates(batch).output});
    }
    std::vector<ShardOutcome> outcomes(count);
    OutputShard* const held[] = {&together.shard};
    together.layer.train(batches, held, outcomes);

    REQUIRE(outcomes == expected);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(together.gradient(i) == steps[i]);
    }
    REQUIRE(together.shard.rows().touched() == apart.shard.rows().touched());
    for (std::uint32_t row = 0; row < apart.shard.rows().rows(); ++row) {
      REQUIRE(together.row(row) == apart.row(row));
      REQUIRE(together.shard.rows().state(row) == apart.shard.rows().state(row));
    }
  }
}

TEST_CASE("output layer: neither threads nor other shards change a shard", "[output_layer]") {
  for (const Sampling sampling : {Sampling::kLsh, Sampling::kRandom, Sampling::kAll}) {
    ModelConfig config = test::small_config();
    config.labels = 3'000;
    config.output_shards = 7;
    config.sampling = sampling;
    config.active_cap = 600;
    const auto threads = GENERATE(1U, 2U, 3U, 5U);
    INFO(threads << " threads, sampling " << static_cast<int>(sampling));
    // Shard 4 alone, on one thread; and between others, some of which are held and not asked.
    ShardScene alone(config, ShardId{4});
    std::deque<ShardScene> scenes;
    std::vector<OutputShard*> held;
    std::vector<OutputShard*> asked;
    for (const std::uint32_t s : {0U, 1U, 3U, 4U, 6U}) {
      scenes.emplace_back(config, ShardId{s});
      held.push_back(&scenes.back().shard);
      if (s != 1) asked.push_back(held.back());
    }
    constexpr std::size_t kOurs = 2;  // among those asked
    ShardScene& ours = scenes[3];
    ThreadPool pool(threads);
    std::vector<ShardScratch> scratch(threads, ShardScratch(config));
    OutputLayer layer(ours.context, pool, scratch);
    layer.hold(held);
    for (BatchIndex batch = 0; batch < 6; ++batch) {
      const ShardOutcome expected = alone.train(batch);
      ours.prepare(batch);
      const Positives positives = test::make_positives(config, batch, ours.plan.examples_in(batch));
      const ShardBatch only{&ours.queries, &positives, ours.plan.rates(batch).output};
      std::vector<ShardOutcome> outcomes(asked.size());
      layer.train({&only, 1}, asked, outcomes);
      REQUIRE(outcomes[kOurs] == expected);
      std::vector<std::int32_t> gradient(ours.hidden.codes.size());
      for (const ShardScratch& mine : scratch) mine.add_gradient_to(0, 0, gradient);
      // The others, each alone, add up to the same.
      std::vector<std::int32_t> expected_sum = alone.gradient();
      for (std::size_t i = 0; i < scenes.size(); ++i) {
        if (i == 1 || i == 3) continue;
        ShardScene other(config, scenes[i].shard.id());
        for (BatchIndex earlier = 0; earlier <= batch; ++earlier) {
          other.train(earlier);
          if (earlier == 2 && batch > 2) {
            other.shard.rehash(other.scratch[0]);
            other.layer.mark_codes_changed();
          }
        }
        const std::vector<std::int32_t> own = other.gradient();
        for (std::size_t k = 0; k < own.size(); ++k) expected_sum[k] += own[k];
      }
      REQUIRE(gradient == expected_sum);
      if (batch == 2) {
        alone.shard.rehash(alone.scratch[0]);
        alone.layer.mark_codes_changed();
        layer.for_each_shard(asked.size(),
                             [&](std::size_t index, Team team) { asked[index]->rehash(team); });
        layer.mark_codes_changed();
      }
    }
    REQUIRE(ours.shard.touched_rows() == alone.shard.touched_rows());
    REQUIRE(ours.shard.commit(Team(pool, scratch)) == alone.commit());
    REQUIRE(ours.shard.digest() == alone.shard.digest());
    if (sampling == Sampling::kLsh) ours.require_fresh_codes();
    REQUIRE(held[1]->rows().touched().empty());
  }
}

}  // namespace gleaner
