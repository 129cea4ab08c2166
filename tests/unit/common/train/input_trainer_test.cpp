#include "common/train/input_trainer.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "common/limits.hpp"
#include "tests/unit/common/train/input_answers.hpp"
#include "tests/unit/common/train/input_run.hpp"

namespace gleaner {

TEST_CASE("input trainer: two that hold a shard each do what one layer with both does",
          "[input_trainer]") {
  InputRun run;
  InputTrainer first(run.config, run.pool);
  ThreadPool other_pool(2);
  InputTrainer second(run.config, other_pool);
  run.load_initial(first, {run.lease(0)});
  run.load_initial(second, {run.lease(1)});
  REQUIRE(run.plan.round_count() == 4);
  std::size_t commits = 0;
  for (BatchIndex batch = 0; batch <= run.plan.batch_count(); ++batch) {
    CAPTURE(batch);
    Answers answers{run, {}, {}};
    const InputUnit one = run.unit(batch, {run.lease(0)});
    const InputUnit other = run.unit(batch, {run.lease(1)});
    answers.add(one, run.run(first, one));
    answers.add(other, run.run(second, other));
    commits += answers.commits.size();
    answers.compare(run, batch);
  }
  REQUIRE(commits == 8);
}

TEST_CASE("input trainer: one unit does its steps on all of its shards", "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  const std::vector<LeaseRef> both{run.lease(0), run.lease(1)};
  run.load_initial(trainer, both);
  for (BatchIndex batch = 0; batch <= run.plan.batch_count(); ++batch) {
    CAPTURE(batch);
    Answers answers{run, {}, {}};
    const InputUnit unit = run.unit(batch, both);
    answers.add(unit, run.run(trainer, unit));
    answers.compare(run, batch);
  }
}

TEST_CASE("input trainer: held-out points are scored as the shards stand, without dropout",
          "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  const std::vector<LeaseRef> both{run.lease(0), run.lease(1)};
  run.load_initial(trainer, both);
  forward_first_batches(run, trainer, both);
  const InputStep score{InputStep::Kind::kScore, 5, 30, 0, {}};
  const InputUnit unit{UnitId{9}, both, {score}};
  Answers answers{run, {}, {}};
  answers.add(unit, run.run(trainer, unit));
  REQUIRE(run.coder.encode(answers.activations, std::nullopt) ==
          run.layer.forward(run.examples_of(score), std::nullopt));
}

TEST_CASE("input trainer: a hand-over continues elsewhere to the same bits, wherever it happens",
          "[input_trainer]") {
  const BatchIndex last = InputRun().plan.batch_count();
  bool was_within_round = false;
  bool was_between_rounds = false;
  for (BatchIndex at = 0; at <= last; ++at) {
    InputRun run;
    InputTrainer stays(run.config, run.pool);
    InputTrainer leaves(run.config, run.pool);
    InputTrainer comes(run.config, run.pool);
    run.load_initial(stays, {run.lease(0)});
    run.load_initial(leaves, {run.lease(1)});
    LeaseRef moving = run.lease(1);
    InputTrainer* holder = &leaves;
    for (BatchIndex batch = 0; batch <= last; ++batch) {
      CAPTURE(at, batch);
      if (batch == at) {
        const auto parts = leaves.hand_over(moving);
        REQUIRE(parts.ok());
        const RoundIndex base_round = run.plan.round_of(run.applied);
        for (std::size_t i = 0; i < parts->size(); ++i) {
          REQUIRE((*parts)[i].base_round == base_round);
          REQUIRE((*parts)[i].next_batch == run.applied);
          REQUIRE((*parts)[i].part == i);
          REQUIRE((*parts)[i].parts == parts->size());
        }
        const bool is_empty = (*parts)[0].rows.rows.empty();
        REQUIRE(is_empty == run.plan.is_round_end(run.applied));
        (is_empty ? was_between_rounds : was_within_round) = true;
        REQUIRE(leaves.memory_bytes() == 0);
        require_refused(leaves.check(run.unit(batch, {moving})), ErrorCode::kStaleLease,
                        "is not held");
        moving = run.lease(1, 7);
        load(run, comes, moving, base_round, *parts);
        holder = &comes;
      }
      Answers answers{run, {}, {}};
      const InputUnit own = run.unit(batch, {run.lease(0)});
      const InputUnit moved = run.unit(batch, {moving});
      answers.add(own, run.run(stays, own));
      answers.add(moved, run.run(*holder, moved));
      answers.compare(run, batch);
    }
  }
  REQUIRE(was_within_round);
  REQUIRE(was_between_rounds);
}

TEST_CASE("input trainer: a shard loaded from its last commit repeats the batches since",
          "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  run.load_initial(trainer, {run.lease(0)});
  const BatchIndex begin = run.plan.round_begin(1);
  const BatchIndex end = run.plan.round_end(1);
  for (BatchIndex batch = 0; batch <= begin; ++batch) {
    (void)run.run(trainer, run.unit(batch, {run.lease(0)}));
    run.advance(batch);
  }
  InputTrainer replayer(run.config, run.pool);
  load(run, replayer, run.lease(0, 2), 1, {});
  std::vector<ShardCommit> expected;
  for (BatchIndex batch = begin + 1; batch <= end; ++batch) {
    UnitOutcome outcome = run.run(trainer, run.unit(batch, {run.lease(0)}));
    expected.insert(expected.end(), outcome.commits.begin(), outcome.commits.end());
    run.advance(batch);
  }
  REQUIRE_FALSE(expected.empty());
  // The activations are known already: the updates alone.
  InputUnit replay{UnitId{1}, {run.lease(0, 2)}, {}};
  for (BatchIndex batch = begin; batch < end; ++batch) {
    replay.steps.push_back(run.backward(batch, replay.leases));
  }
  const UnitOutcome replayed = run.run(replayer, replay);
  REQUIRE(replayed.result.activations.empty());
  REQUIRE(replayed.commits.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(replayed.commits[i].update == expected[i].update);
    REQUIRE(replayed.commits[i].round == expected[i].round);
  }
}

TEST_CASE("input trainer: a grant that does not fit the run is refused", "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  const auto refused = [&](const std::string& words, auto&& spoil) {
    LeaseGrant grant;
    grant.lease = run.lease(1);
    spoil(grant);
    require_refused(trainer.begin_load(grant), ErrorCode::kProtocol, words);
    REQUIRE(trainer.memory_bytes() == 0);
  };
  refused("shard 3 is no input shard", [](LeaseGrant& g) { g.lease.shard = ShardId{3}; });
  refused("there are only 18 shards", [](LeaseGrant& g) { g.lease.shard = ShardId{18}; });
  refused("1 label counts for 0 neurons", [](LeaseGrant& g) { g.label_counts = {1}; });
  refused("beyond the run's 4 rounds", [](LeaseGrant& g) { g.base_round = 5; });
  refused("does not lie in the round", [](LeaseGrant& g) { g.next_batch = 4; });
  refused("cannot be", [](LeaseGrant& g) { g.base_chunks = 1; });
  refused("cannot be", [](LeaseGrant& g) { g.chunks = 2 * 501 + 3; });
  refused("no handed-over chunk", [](LeaseGrant& g) { g.next_batch = 2; });
}

TEST_CASE("input trainer: a chunk that does not fit the shard is refused and changes nothing",
          "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  const LeaseRef lease = run.lease(1);
  LeaseGrant grant;
  grant.lease = lease;
  grant.next_batch = 2;
  grant.base_chunks = 2;
  grant.chunks = 3;
  REQUIRE(trainer.begin_load(grant).ok());
  ShardChunk good{.lease = lease, .chunk = 0, .rows = {}};
  good.rows.rows = {4, 500};  // the bias row is the last one
  good.rows.values.assign(2 * 32, 0.25F);
  good.rows.states = {0.0F, 1.0F};
  const auto refused = [&](const std::string& words, auto&& spoil) {
    ShardChunk chunk = good;
    spoil(chunk);
    require_refused(trainer.load_chunk(chunk), ErrorCode::kProtocol, words);
  };
  refused("chunk 3 of 3 does not exist", [](ShardChunk& c) { c.chunk = 3; });
  refused("do not fit", [](ShardChunk& c) { c.rows.values.pop_back(); });
  refused("do not fit", [](ShardChunk& c) { c.rows.states.push_back(0); });
  refused("do not fit", [](ShardChunk& c) { c.rows.codes = {1, 1}; });  // there are no tables
  refused("do not fit", [](ShardChunk& c) { c.chunk = 2; });  // a hand-over's chunk has flags
  refused("row 501 is out of range", [](ShardChunk& c) { c.rows.rows[1] = 501; });
  refused("out of order", [](ShardChunk& c) { c.rows.rows[1] = 4; });
  refused("optimizer state of nan", [](ShardChunk& c) { c.rows.states[1] = NAN; });
  refused("row 500 has a weight of inf", [](ShardChunk& c) { c.rows.values[32] = INFINITY; });
  refused("row 4 has a weight of nan", [](ShardChunk& c) { c.rows.values[31] = NAN; });
  REQUIRE(trainer.load_chunk(good).ok());
  refused("chunk 0 came twice", [](ShardChunk&) {});
  refused("row 4 came in an earlier chunk", [](ShardChunk& c) { c.chunk = 1; });

  const auto early = trainer.finish_load(lease);
  REQUIRE_FALSE(early.ok());
  REQUIRE_THAT(early.error().message, Contains("chunk 1 has not come"));
  REQUIRE(trainer.hand_over(lease).error().code == ErrorCode::kProtocol);
  REQUIRE(trainer.load_chunk({.lease = lease, .chunk = 1, .rows = {}}).ok());
  good.chunk = 2;
  good.rows.stale_codes = {0, 0};
  const std::uint64_t before = trainer.memory_bytes();
  REQUIRE(trainer.load_chunk(good).ok());
  REQUIRE(trainer.memory_bytes() == before + 2 * 32 * sizeof(float));
  REQUIRE(trainer.finish_load(lease).value() == ShardReady{lease});
  REQUIRE(trainer.finish_load(lease).ok());
  refused("after the shard was loaded", [](ShardChunk&) {});
  // A hand-over has the rows that were laid over the checkpoint.
  const auto parts = trainer.hand_over(lease);
  REQUIRE(parts.ok());
  REQUIRE(parts->size() == 1);
  REQUIRE((*parts)[0].rows == good.rows);
  REQUIRE((*parts)[0].next_batch == 2);
}

TEST_CASE("input trainer: only the present lease counts", "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  run.load_initial(trainer, {run.lease(0, 5)});
  LeaseGrant grant;
  grant.lease = run.lease(0, 4);
  require_refused(trainer.begin_load(grant), ErrorCode::kStaleLease, "under lease 4");
  trainer.drop(run.lease(0, 4));
  trainer.drop(run.lease(1, 4));
  REQUIRE(trainer.hand_over(run.lease(0, 4)).error().code == ErrorCode::kStaleLease);
  REQUIRE(trainer.finish_load(run.lease(1)).error().code == ErrorCode::kStaleLease);
  require_refused(trainer.load_chunk({.lease = run.lease(0, 6), .chunk = 0, .rows = {}}),
                  ErrorCode::kStaleLease, "under lease 6");

  // A later grant replaces the shard, also while it is being loaded.
  for (const std::uint64_t epoch : {6u, 7u}) {
    grant.lease = run.lease(0, epoch);
    REQUIRE(trainer.begin_load(grant).ok());
  }
  require_refused(trainer.check(run.unit(0, {run.lease(0, 7)})), ErrorCode::kProtocol,
                  "still being loaded");
  REQUIRE(trainer.finish_load(run.lease(0, 7)).ok());
  (void)run.run(trainer, run.unit(0, {run.lease(0, 7)}));
  trainer.drop(run.lease(0, 7));
  REQUIRE(trainer.memory_bytes() == 0);
}

TEST_CASE("input trainer: a unit that does not fit is refused and changes nothing",
          "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  const std::vector<LeaseRef> both{run.lease(0), run.lease(1)};
  run.load_initial(trainer, both);
  forward_first_batches(run, trainer, both);
  // The shards stand before batch 0: the next forward pass sees its update.
  const InputUnit good = run.unit(3, both);
  REQUIRE(good.steps.size() == 2);
  const auto refused = [&](ErrorCode code, const std::string& words, auto&& spoil) {
    InputUnit unit = good;
    spoil(unit);
    CAPTURE(words);
    const Result<void> known = trainer.check_steps(unit);
    require_refused(known.ok() ? trainer.check(unit) : known, code, words);
  };
  const auto protocol = ErrorCode::kProtocol;
  const BatchIndex last = run.plan.batch_count();
  refused(ErrorCode::kStaleLease, "shard 17 is not held under lease 9",
          [&](InputUnit& u) { u.leases[1] = run.lease(1, 9); });
  refused(protocol, "the forward pass of batch 3 sees the updates before batch 1, not before 0",
          [](InputUnit& u) { u.steps.erase(u.steps.begin()); });
  refused(protocol, "the forward pass of batch 3",
          [](InputUnit& u) { std::swap(u.steps[0], u.steps[1]); });
  refused(protocol, "the forward pass of batch 4",
          [&](InputUnit& u) { u.steps[1] = run.forward(4); });
  refused(protocol, "the update of batch 1, but the shard stands before batch 0",
          [&](InputUnit& u) { u.steps[0] = run.backward(1, both); });
  refused(protocol, "the update of batch 0, but the shard stands before batch 1",
          [](InputUnit& u) { u.steps[1] = u.steps[0]; });
  refused(protocol, "step 3 with 7 examples is none",
          [](InputUnit& u) { u.steps[1].examples = 7; });
  refused(protocol, "step 0 with 9 examples is none",
          [](InputUnit& u) { u.steps[0].examples = 9; });
  refused(protocol, "is none of the run's", [&](InputUnit& u) { u.steps[1].index = last; });
  refused(protocol, "is none of the run's",
          [](InputUnit& u) { u.steps[0].index = ~std::uint64_t{0}; });
  refused(protocol, "1 gradients for 2 shards",
          [](InputUnit& u) { u.steps[0].gradients.pop_back(); });

  InputTrainer one(run.config, run.pool);  // shards that stand apart
  run.load_initial(one, both);
  InputUnit half{UnitId{1}, {run.lease(0)}, {run.backward(0, {run.lease(0)})}};
  (void)run.run(one, half);
  require_refused(one.check(good), protocol, "the shard stands before batch 1");

  // A refusal has changed nothing.
  Answers answers{run, {}, {}};
  answers.add(good, run.run(trainer, good));
  answers.compare(run, 3);
}

TEST_CASE("input trainer: a malformed gradient is refused by batch and shard", "[input_trainer]") {
  InputRun run;
  const std::vector<LeaseRef> both{run.lease(0), run.lease(1)};
  run.advance(0);
  const auto refused = [&](const std::string& words, auto&& spoil) {
    InputTrainer trainer(run.config, run.pool);
    run.load_initial(trainer, both);
    InputUnit unit{UnitId{1}, both, {run.backward(0, both)}};
    Bytes bad = *unit.steps[0].gradients[1];
    spoil(bad);
    unit.steps[0].gradients[1] = std::make_shared<const Bytes>(std::move(bad));
    REQUIRE(trainer.check(unit).ok());
    const auto outcome = run.try_run(trainer, unit);
    REQUIRE_FALSE(outcome.ok());
    REQUIRE(outcome.error().code == ErrorCode::kProtocol);
    REQUIRE_THAT(outcome.error().message, Contains("batch 0, shard 17: ") && Contains(words));
  };
  refused("cut off", [](Bytes& b) { b.clear(); });
  refused("bytes of entries", [](Bytes& b) { b.pop_back(); });
  refused("7 examples of 32 units, expected 8 of 32", [](Bytes& b) { b[0] = 7; });
  refused("8 examples of 64 units", [](Bytes& b) { b[2] = 64; });
}

TEST_CASE(
    "input trainer: stepped back, offered and adopted, a shard goes on as if nothing had been",
    "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  const std::vector<LeaseRef> both{run.lease(0), run.lease(1)};
  run.load_initial(trainer, both);
  Answers answers{run, {}, {}};
  const BatchIndex end = run.plan.round_end(1);
  for (BatchIndex batch = 0; batch < end; ++batch) {
    answers.add(run.unit(batch, both), run.run(trainer, run.unit(batch, both)));
    run.advance(batch);
  }
  // Both rounds' last updates have not been asked for yet: it stands in round 1.
  const std::vector<OfferedShard> offered = trainer.step_back(1);
  REQUIRE(offered.size() == 2);
  REQUIRE(offered[1].lease == run.lease(1));
  REQUIRE(offered[0].digest.rows > 0);
  REQUIRE(trainer.check(run.unit(end, both)).error().code == ErrorCode::kStaleLease);

  LeaseGrant grant{run.lease(0, 8), 1, run.plan.round_begin(1), 0, 0, {}, true};
  grant.base_round = 0;
  REQUIRE(trainer.adopt(grant).error().code == ErrorCode::kProtocol);
  grant.base_round = 1;
  grant.is_held = false;
  REQUIRE(trainer.adopt(grant).error().code == ErrorCode::kProtocol);
  grant.is_held = true;
  REQUIRE(trainer.adopt(grant).ok());
  REQUIRE(trainer.adopt(grant).error().code == ErrorCode::kStaleLease);
  // Stepped back again it is the same, and what was not adopted is still offered.
  REQUIRE(trainer.step_back(1).at(0).digest == offered[0].digest);
  REQUIRE(trainer.step_back(0).at(1).digest == ShardDigest{});
  REQUIRE(trainer.step_back(0).size() == 2);
  // It stands before an earlier checkpoint than the master's: that is of no use.
  REQUIRE(trainer.step_back(1).empty());
  REQUIRE(trainer.memory_bytes() == 0);
}

TEST_CASE("input trainer: more activations than fit a frame are refused", "[input_trainer]") {
  ModelConfig config = test::input_run_config();
  config.hidden = 4096;
  config.features = 2;
  const InputRun run(config);
  ThreadPool pool(1);
  InputTrainer trainer(config, pool);
  const std::vector<LeaseRef> both{run.lease(0), run.lease(1)};
  run.load_initial(trainer, both);
  const InputStep score{InputStep::Kind::kScore, 0, 1024, 0, {}};
  InputUnit unit{UnitId{1}, both, {score, score, score}};
  REQUIRE(trainer.check(unit).ok());  // 48 MiB
  unit.steps.push_back(score);        // 64 MiB
  require_refused(trainer.check(unit), ErrorCode::kProtocol,
                  "activations of 4096 examples and 4096 units do not fit a frame");
  unit.leases = {run.lease(0)};
  REQUIRE(trainer.check(unit).ok());
}

TEST_CASE("input trainer: the estimate covers what a trained shard holds", "[input_trainer]") {
  InputRun run;
  InputTrainer trainer(run.config, run.pool);
  run.load_initial(trainer, {run.lease(0)});
  const std::uint64_t loaded = trainer.memory_bytes();
  REQUIRE(loaded > std::uint64_t{501} * 32 * 4);
  (void)run.run(trainer, run.unit(0, {run.lease(0)}));
  run.advance(0);
  (void)run.run(trainer, {UnitId{1}, {run.lease(0)}, {run.backward(0, {run.lease(0)})}});
  REQUIRE(trainer.memory_bytes() > loaded);
  REQUIRE(trainer.memory_bytes() <= InputTrainer::shard_bytes(run.config));
}

}  // namespace gleaner
