#include "common/train/shard_trainer.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "common/train/kernels.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "tests/unit/common/train/train_fixture.hpp"

namespace gleaner {
namespace {

using test::lease_of;
using test::make_unit;
using test::small_config;
using test::train_ok;

// Everything a run says, keyed so that who computed it leaves no trace.
struct Record {
  std::map<std::pair<BatchIndex, std::uint32_t>, ShardOutcome> outcomes;
  std::map<BatchIndex, std::vector<std::int32_t>> gradients;  // summed over all shards
  std::map<std::tuple<RoundIndex, std::uint32_t, std::uint32_t>, SparseUpdate> commits;

  friend bool operator==(const Record&, const Record&) = default;

  void add(const ModelConfig& config, const ShardTrainer::UnitOutcome& outcome) {
    for (const BatchResult& batch : outcome.result.batches) {
      for (const ShardOutcome& shard : batch.shards) {
        REQUIRE(outcomes.emplace(std::pair(batch.batch, raw(shard.shard)), shard).second);
      }
      const QuantizedActivations codes =
          test::make_hidden(config, batch.batch, RunPlan(config).examples_in(batch.batch));
      std::vector<std::int32_t>& sum = gradients[batch.batch];
      sum.resize(codes.codes.size());
      REQUIRE(add_gradient(codes, batch.gradient, sum).ok());
    }
    for (const ShardCommit& commit : outcome.commits) {
      REQUIRE(commits
                  .emplace(std::tuple(commit.round, raw(commit.lease.shard), commit.part),
                           commit.update)
                  .second);
    }
  }
};

// Runs the first `batches` batches with the shards divided into groups, each in its own trainer.
Record run(const ModelConfig& config, const std::vector<std::vector<std::uint32_t>>& groups,
           unsigned threads, SimdLevel level, std::uint32_t unit_batches, BatchIndex batches) {
  Record record;
  for (const auto& group : groups) {
    ThreadPool pool(threads);
    ShardTrainer trainer(config, pool, kernels_for(level));
    std::vector<LeaseRef> leases;
    for (const std::uint32_t shard : group) leases.push_back(lease_of(shard));
    test::load_initial(trainer, config, leases);
    for (BatchIndex batch = 0; batch < batches; batch += unit_batches) {
      const auto count =
          static_cast<std::uint32_t>(std::min<BatchIndex>(unit_batches, batches - batch));
      record.add(config, train_ok(trainer, make_unit(config, leases, batch, count)));
    }
  }
  return record;
}

void require_refused(const Result<ShardTrainer::UnitOutcome>& result, ErrorCode code,
                     const std::string& words) {
  REQUIRE_FALSE(result.ok());
  REQUIRE(result.error().code == code);
  REQUIRE_THAT(result.error().message, Catch::Matchers::Contains(words));
}

SharedBytes packed(const QuantizedActivations& codes) {
  return std::make_shared<const Bytes>(pack(codes));
}

}  // namespace

TEST_CASE("trainer: results do not depend on threads, SIMD level, grouping or unit size",
          "[trainer]") {
  for (const Sampling sampling : {Sampling::kLsh, Sampling::kRandom, Sampling::kAll}) {
    ModelConfig config = small_config();
    config.sampling = sampling;
    const BatchIndex batches = RunPlan(config).batch_count();
    REQUIRE(batches == 14);
    const Record reference = run(config, {{0, 1, 2, 3, 4}}, 1, SimdLevel::kScalar, 1, batches);
    REQUIRE(reference.outcomes.size() == 14 * 5);
    REQUIRE(reference.commits.size() == 4 * 5);
    for (const SimdLevel level : available_simd_levels()) {
      for (const unsigned threads : {1u, 2u, 3u}) {
        CAPTURE(simd_level_name(level), threads);
        REQUIRE(run(config, {{0, 1, 2, 3, 4}}, threads, level, 3, batches) == reference);
      }
      REQUIRE(run(config, {{3}, {0, 2, 4}, {1}}, 2, level, 14, batches) == reference);
      REQUIRE(run(config, {{0}, {1}, {2}, {3}, {4}}, 1, level, 5, batches) == reference);
    }
  }
}

TEST_CASE("trainer: another seed or rate gives another model", "[trainer]") {
  const ModelConfig config = small_config();
  const auto digest = [](const ModelConfig& of) {
    const Record record = run(of, {{0, 1, 2, 3, 4}}, 1, available_simd_levels().back(), 2, 4);
    return record.outcomes.at({3, 2}).gradient_digest;
  };
  const std::uint64_t reference = digest(config);
  REQUIRE(digest(config) == reference);
  ModelConfig other = config;
  other.output_rate *= 2;
  REQUIRE(digest(other) != reference);
  other = config;
  ++other.seed;
  REQUIRE(digest(other) != reference);
}

TEST_CASE("trainer: training lowers the loss", "[trainer]") {
  ModelConfig config = small_config();
  config.sampling = Sampling::kAll;
  config.epochs = 1;
  config.points = 16 * 40;
  ThreadPool pool(1);
  ShardTrainer trainer(config, pool);
  const auto leases = test::all_leases(config);
  test::load_initial(trainer, config, leases);
  std::vector<std::int64_t> losses;
  for (BatchIndex batch = 0; batch < 40; ++batch) {
    // Always the examples of batch 0, so that there is something to learn by heart.
    TrainUnit unit = make_unit(config, leases, 0, 1);
    unit.batches[0].batch = batch;
    const auto outcome = train_ok(trainer, unit);
    std::int64_t loss = 0;
    for (const ShardOutcome& shard : outcome.result.batches[0].shards) loss += shard.loss;
    losses.push_back(loss);
  }
  REQUIRE(losses.back() < losses.front() / 4);
}

TEST_CASE("trainer: gradients that nobody wants are not sent, but their digests are", "[trainer]") {
  const ModelConfig config = small_config();
  const auto leases = test::all_leases(config);
  ThreadPool pool(2);
  ShardTrainer wanted(config, pool);
  ShardTrainer unwanted(config, pool);
  test::load_initial(wanted, config, leases);
  test::load_initial(unwanted, config, leases);
  TrainUnit unit = make_unit(config, leases, 0, 5);
  const auto with = train_ok(wanted, unit);
  unit.wants_gradient = false;
  const auto without = train_ok(unwanted, unit);
  for (std::size_t i = 0; i < 5; ++i) {
    REQUIRE(without.result.batches[i].shards == with.result.batches[i].shards);
    REQUIRE(without.result.batches[i].gradient.empty());
    REQUIRE_FALSE(with.result.batches[i].gradient.empty());
  }
  REQUIRE(without.commits == with.commits);
}

TEST_CASE("trainer: a unit that reaches a round's end brings every shard's commit", "[trainer]") {
  const ModelConfig config = small_config();
  ThreadPool pool(1);
  ShardTrainer trainer(config, pool);
  const std::vector<LeaseRef> leases{lease_of(1), lease_of(4)};
  test::load_initial(trainer, config, leases);
  REQUIRE(train_ok(trainer, make_unit(config, leases, 0, 3)).commits.empty());
  const auto at_end = train_ok(trainer, make_unit(config, leases, 3, 1));
  REQUIRE(at_end.commits.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const ShardCommit& commit = at_end.commits[i];
    REQUIRE(commit.lease == leases[i]);
    REQUIRE(commit.round == 0);
    REQUIRE(commit.part == 0);
    REQUIRE(commit.parts == 1);
    REQUIRE_FALSE(commit.update.rows.empty());
  }
  // The epoch's last round is shorter: batches 4 to 6.
  const auto next = train_ok(trainer, make_unit(config, leases, 4, 4));
  REQUIRE(next.commits.size() == 2);
  REQUIRE(next.commits[0].round == 1);
}

TEST_CASE("trainer: evaluation finds the exact best, ties by ascending neuron", "[trainer]") {
  const ModelConfig config = small_config();
  const ShardMap map(config);
  for (const SimdLevel level : available_simd_levels()) {
    for (const unsigned threads : {1u, 3u}) {
      ThreadPool pool(threads);
      ShardTrainer trainer(config, pool, kernels_for(level));
      const std::vector<LeaseRef> leases{lease_of(0), lease_of(2), lease_of(3)};
      // Rows repeat, so that scores tie within and between shards.
      std::map<std::uint32_t, std::vector<float>> rows;
      for (const LeaseRef& lease : leases) {
        LeaseGrant grant = test::initial_grant(config, lease);
        grant.base_chunks = grant.chunks = 1;
        ShardChunk chunk{.lease = lease, .chunk = 0, .rows = {}};
        for (std::uint32_t row = 0; row < map.row_count(lease.shard); ++row) {
          std::vector<float> values(49);
          Rng rng(row % 7, Purpose::kTest);
          for (float& value : values) value = signed_unit(rng.next());
          rows[map.neurons(lease.shard).begin + row] = values;
          chunk.rows.rows.push_back(row);
          chunk.rows.values.insert(chunk.rows.values.end(), values.begin(), values.end());
          chunk.rows.states.push_back(0.5F);
          chunk.rows.codes.resize(chunk.rows.rows.size() * config.tables, 1);
        }
        REQUIRE(trainer.begin_load(grant).ok());
        REQUIRE(trainer.load_chunk(chunk).ok());
        REQUIRE(trainer.finish_load(lease).ok());
      }
      const QuantizedActivations hidden = test::make_hidden(config, 9, 70);
      EvalUnit unit{.unit = UnitId{5},
                    .leases = leases,
                    .top_k = 12,
                    .hidden = std::make_shared<const Bytes>(pack(hidden))};
      const Result<EvalResult> result = trainer.evaluate(unit);
      REQUIRE(result.ok());
      REQUIRE(result->unit == UnitId{5});
      REQUIRE(result->top_k == 12);
      REQUIRE(result->best.size() == 70 * 12);
      const Kernels& scalar = kernels_for(SimdLevel::kScalar);
      for (std::uint32_t e = 0; e < 70; ++e) {
        std::vector<float> h(48);
        scalar.dequantise(hidden.scales[e], &hidden.codes[e * 48], h.data(), 48);
        std::vector<ScoredNeuron> all;
        for (const auto& [neuron, values] : rows) {
          all.push_back({neuron, scalar.dot(values.data(), h.data(), 48) + values[48]});
        }
        std::stable_sort(all.begin(), all.end(), [](const ScoredNeuron& a, const ScoredNeuron& b) {
          return a.score > b.score;
        });
        REQUIRE(std::equal(all.begin(), all.begin() + 12, result->best.begin() + e * 12));
      }
    }
  }
}

TEST_CASE("trainer: fewer neurons than asked for are all there is", "[trainer]") {
  ModelConfig config = small_config();
  config.labels = 12;
  ThreadPool pool(1);
  ShardTrainer trainer(config, pool);
  test::load_initial(trainer, config, {lease_of(0), lease_of(1)});
  const EvalUnit unit{
      .unit = UnitId{1},
      .leases = {lease_of(0), lease_of(1)},
      .top_k = 10,
      .hidden = std::make_shared<const Bytes>(pack(test::make_hidden(config, 1, 3)))};
  const Result<EvalResult> result = trainer.evaluate(unit);
  REQUIRE(result.ok());
  REQUIRE(result->top_k == 4);
  REQUIRE(result->best.size() == 12);
}

TEST_CASE("trainer: a unit that does not fit is refused and changes nothing", "[trainer]") {
  const ModelConfig config = small_config();
  const std::vector<LeaseRef> leases{lease_of(0), lease_of(2)};
  ThreadPool pool(1);
  ShardTrainer trainer(config, pool);
  test::load_initial(trainer, config, leases);
  const TrainUnit good = make_unit(config, leases, 0, 2);
  const auto refused = [&](ErrorCode code, const std::string& words, auto&& spoil) {
    TrainUnit unit = good;
    spoil(unit);
    CAPTURE(words);
    require_refused(trainer.train(unit), code, words);
  };
  const auto protocol = ErrorCode::kProtocol;
  refused(protocol, "without leases", [](TrainUnit& u) { u.leases.clear(); });
  refused(protocol, "do not ascend", [](TrainUnit& u) { std::swap(u.leases[0], u.leases[1]); });
  refused(protocol, "do not ascend", [](TrainUnit& u) { u.leases[1] = u.leases[0]; });
  refused(ErrorCode::kStaleLease, "shard 2 is not held",
          [](TrainUnit& u) { u.leases[1] = lease_of(2, 9); });
  refused(ErrorCode::kStaleLease, "shard 3 is not held",
          [](TrainUnit& u) { u.leases.push_back(lease_of(3)); });
  refused(protocol, "of 0 batches", [](TrainUnit& u) { u.batches.clear(); });
  refused(protocol, "of 65 batches", [](TrainUnit& u) { u.batches.resize(65, u.batches[0]); });
  refused(protocol, "stands before batch 0",
          [](TrainUnit& u) { u.batches.erase(u.batches.begin()); });
  refused(protocol, "batch 2 is out of order", [](TrainUnit& u) { u.batches[1].batch = 2; });
  refused(protocol, "out of order", [](TrainUnit& u) { u.batches[0].batch = 14; });
  refused(protocol, "no quantized activations",
          [](TrainUnit& u) { u.batches[1].hidden = nullptr; });
  refused(protocol, "batch 0:", [](TrainUnit& u) {
    u.batches[0].hidden = std::make_shared<const Bytes>(Bytes{1, 2, 3});
  });
  refused(protocol, "15 examples, where the plan has 16",
          [&](TrainUnit& u) { u.batches[0].hidden = packed(test::make_hidden(config, 0, 15)); });
  refused(protocol, "quantized activations 64 wide", [&](TrainUnit& u) {
    ModelConfig wider = config;
    wider.hidden = 64;
    u.batches[0].hidden = packed(test::make_hidden(wider, 0, 16));
  });
  refused(protocol, "example 3 has a hidden scale", [&](TrainUnit& u) {
    QuantizedActivations codes = test::make_hidden(config, 0, 16);
    codes.scales[3] = 1e30F;
    u.batches[0].hidden = packed(codes);
  });
  refused(protocol, "do not divide",
          [](TrainUnit& u) { u.batches[0].positives.offsets.pop_back(); });
  refused(protocol, "do not divide", [](TrainUnit& u) { u.batches[0].positives.offsets[0] = 1; });
  refused(protocol, "do not divide",
          [](TrainUnit& u) { u.batches[0].positives.offsets.back() += 1; });
  refused(protocol, "do not divide",
          [](TrainUnit& u) { u.batches[0].positives.offsets[5] = 1u << 30; });
  refused(protocol, "lies in none of", [](TrainUnit& u) {
    u.batches[0].positives.offsets.assign(17, 1);
    u.batches[0].positives.offsets[0] = 0;
    u.batches[0].positives.neurons = {70};  // of shard 1
  });
  refused(protocol, "lies in none of", [](TrainUnit& u) {
    u.batches[0].positives.offsets.assign(17, 1);
    u.batches[0].positives.offsets[0] = 0;
    u.batches[0].positives.neurons = {4'000'000'000u};
  });
  refused(protocol, "do not ascend", [](TrainUnit& u) {
    u.batches[0].positives.offsets.assign(17, 2);
    u.batches[0].positives.offsets[0] = 0;
    u.batches[0].positives.neurons = {5, 5};
  });

  ShardTrainer fresh(config, pool);
  test::load_initial(fresh, config, leases);
  const auto after_refusals = train_ok(trainer, good);
  const auto reference = train_ok(fresh, good);
  REQUIRE(after_refusals.result.batches == reference.result.batches);
}

TEST_CASE("trainer: an evaluation that does not fit is refused", "[trainer]") {
  const ModelConfig config = small_config();
  ThreadPool pool(1);
  ShardTrainer trainer(config, pool);
  test::load_initial(trainer, config, {lease_of(0)});
  REQUIRE(trainer.begin_load(test::initial_grant(config, lease_of(1))).ok());
  EvalUnit unit{.unit = UnitId{1},
                .leases = {lease_of(0)},
                .top_k = 0,
                .hidden = packed(test::make_hidden(config, 0, 2))};
  REQUIRE(trainer.evaluate(unit).error().code == ErrorCode::kProtocol);
  unit.top_k = 101;
  REQUIRE(trainer.evaluate(unit).error().code == ErrorCode::kProtocol);
  unit.top_k = 5;
  unit.leases = {lease_of(1)};
  REQUIRE_THAT(trainer.evaluate(unit).error().message, Catch::Matchers::Contains("being loaded"));
  unit.leases = {lease_of(0, 2)};
  REQUIRE(trainer.evaluate(unit).error().code == ErrorCode::kStaleLease);
  unit.leases = {lease_of(0)};
  unit.hidden = nullptr;
  REQUIRE(trainer.evaluate(unit).error().code == ErrorCode::kProtocol);
}

}  // namespace gleaner
