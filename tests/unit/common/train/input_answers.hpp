// Answers of holders of input shards, compared with one layer that has all of them.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>

#include "common/limits.hpp"
#include "common/train/input_trainer.hpp"
#include "tests/unit/common/train/input_run.hpp"

namespace gleaner {

using Catch::Matchers::Contains;
using test::InputRun;
using UnitOutcome = InputTrainer::UnitOutcome;

inline void require_refused(const Result<void>& result, ErrorCode code, const std::string& words) {
  REQUIRE_FALSE(result.ok());
  REQUIRE(result.error().code == code);
  REQUIRE_THAT(result.error().message, Contains(words));
}

// Answers of one or more holders about a batch's forward pass and commits, put together.
struct Answers {
  const InputRun& run;
  std::vector<float> activations;
  std::map<ShardId, std::vector<SparseUpdate>> commits;

  void add(const InputUnit& unit, const UnitOutcome& outcome) {
    REQUIRE(outcome.result.unit == unit.unit);
    for (const ShardCommit& commit : outcome.commits) {
      REQUIRE(commit.round == run.plan.round_of(run.applied));
      REQUIRE(commit.part == commits[commit.lease.shard].size());
      commits[commit.lease.shard].push_back(commit.update);
    }
    const InputStep& last = unit.steps.back();
    if (last.kind == InputStep::Kind::kBackward) {
      REQUIRE(outcome.result.activations.empty());
      return;
    }
    activations.resize(std::size_t{last.examples} * run.config.hidden);
    REQUIRE(outcome.result.activations.size() == unit.leases.size());
    for (std::size_t i = 0; i < unit.leases.size(); ++i) {
      const NeuronRange units = run.map.neurons(unit.leases[i].shard);
      REQUIRE(unpack_activations(outcome.result.activations[i], last.examples, run.config.hidden,
                                 {units.begin, units.size()}, activations)
                  .ok());
    }
  }

  // Before the run advances to the batch: what the layer will say of it is what they said.
  void compare(InputRun& advancing, BatchIndex batch) {
    const std::vector<SparseUpdate> expected = advancing.advance(batch);
    std::vector<SparseUpdate> said;
    for (const auto& [shard, parts] : commits) said.insert(said.end(), parts.begin(), parts.end());
    REQUIRE(said == expected);
    if (batch == run.plan.batch_count()) return;
    REQUIRE(run.coder.encode(activations, batch) == run.codes.at(batch));
  }
};

// Loads `held` as the store has it with what was handed over, chunks in descending order.
inline void load(const InputRun& run, InputTrainer& trainer, const LeaseRef& held,
                 RoundIndex base_round, const std::vector<HandOver>& parts) {
  std::vector<ShardChunk> chunks;
  REQUIRE(trainer.begin_load(run.grant(held, base_round, parts, chunks)).ok());
  for (auto chunk = chunks.rbegin(); chunk != chunks.rend(); ++chunk) {
    const Result<void> loaded = trainer.load_chunk(*chunk);
    if (!loaded) FAIL(loaded.error().message);
  }
  REQUIRE(trainer.finish_load(held).ok());
}

// Up to where the lag asks for the first update.
inline void forward_first_batches(InputRun& run, InputTrainer& trainer,
                                  const std::vector<LeaseRef>& leases) {
  for (BatchIndex batch = 0; batch < 3; ++batch) {
    (void)run.run(trainer, run.unit(batch, leases));
    run.advance(batch);
  }
}

}  // namespace gleaner
