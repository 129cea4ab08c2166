// Batches that take their steps together.
#include "tests/unit/train/shard_scene.hpp"

namespace gleaner {

TEST_CASE("output shard: batches that go together give the bits of one after the other",
          "[output_shard]") {
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
    std::vector<HiddenCodes> hidden;
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
    for (std::size_t i = 0; i < count; ++i) {
      together.scratch[0].clear_gradient(i, hidden[i].examples, config.hidden);
    }
    together.shard.train(batches, outcomes, together.scratch[0]);

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

TEST_CASE("output shard: a team gives the bits of one thread", "[output_shard]") {
  for (const Sampling sampling : {Sampling::kLsh, Sampling::kRandom, Sampling::kAll}) {
    ModelConfig config = test::small_config();
    config.labels = 3'000;
    config.output_shards = 3;
    config.sampling = sampling;
    config.active_cap = 600;
    const auto threads = GENERATE(2U, 3U, 7U);
    INFO(threads << " threads, sampling " << static_cast<int>(sampling));
    ShardScene alone(config);
    ShardScene shared(config);
    ThreadPool pool(threads);
    shared.scratch = std::vector<ShardScratch>(threads, ShardScratch(config));
    const Team team(pool, shared.scratch);
    for (BatchIndex batch = 0; batch < 6; ++batch) {
      const ShardOutcome expected = alone.train(batch);
      shared.prepare(batch);
      for (ShardScratch& mine : shared.scratch) {
        mine.clear_gradient(0, shared.hidden.examples, config.hidden);
      }
      const ShardBatch only{&shared.queries, &shared.positives, shared.plan.rates(batch).output};
      ShardOutcome outcome;
      shared.shard.train({&only, 1}, {&outcome, 1}, team);
      REQUIRE(outcome == expected);
      REQUIRE(shared.gradient() == alone.gradient());
      if (batch == 2) {
        alone.shard.rehash(alone.scratch[0]);
        shared.shard.rehash(team);
      }
    }
    REQUIRE(shared.shard.touched_rows() == alone.shard.touched_rows());
    REQUIRE(shared.shard.commit(team) == alone.shard.commit(alone.scratch[0]));
    REQUIRE(shared.shard.digest() == alone.shard.digest());
    if (sampling == Sampling::kLsh) shared.require_fresh_codes();
  }
}

}  // namespace gleaner
