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
    const auto count = GENERATE(std::size_t{2}, std::size_t{3}, kBatchesTogether);
    INFO(count << " batches, sampling " << static_cast<int>(sampling));
    ShardScene apart(config);
    std::vector<ShardOutcome> expected;
    std::vector<std::vector<std::int32_t>> steps;
    for (BatchIndex batch = 0; batch < count; ++batch) {
      expected.push_back(apart.train(batch));
      steps.push_back(apart.scratch[0].batches[0].steps);
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
    together.shard.train(batches, outcomes, together.scratch[0]);

    REQUIRE(outcomes == expected);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(together.scratch[0].batches[i].steps == steps[i]);
    }
    REQUIRE(together.shard.rows().touched() == apart.shard.rows().touched());
    for (std::uint32_t row = 0; row < apart.shard.rows().rows(); ++row) {
      REQUIRE(together.row(row) == apart.row(row));
      REQUIRE(together.shard.rows().state(row) == apart.shard.rows().state(row));
    }
  }
}

}  // namespace gleaner
