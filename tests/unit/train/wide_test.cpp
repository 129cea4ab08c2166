// Wide rows: where they start, one shard's step, and shards held together, over threads and cuts.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "common/model/row_checks.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/prepared_examples.hpp"
#include "common/train/wide_trainer.hpp"
#include "storage/keep/initial_model.hpp"
#include "tests/sim/workload/planted_data.hpp"
#include "volunteer/executor.hpp"

namespace gleaner {
namespace {

// A small run without a hidden layer.
struct WideRun {
  std::unique_ptr<PackedDataset> train = planted_data({}, 7, 0);
  ModelConfig model;
  std::unique_ptr<WideStart> start;
  std::vector<std::uint32_t> label_counts = count_labels(*train);
  WideWeights weights;

  explicit WideRun(std::uint32_t shards = 4) {
    model.points = train->points();
    model.features = train->features();
    model.labels = train->labels();
    model.hidden = 0;
    model.output_shards = shards;
    model.epochs = 2;
    model.batch_examples = 8;
    model.round_batches = 5;
    model.feature_list = 20;
    model.wide_features = 40;
    model.active_cap = 12;
    model.random_negatives = 2;
    model.rehash_batches = 3;
    model.output_rate = 0.5F;
    start = WideStart::open(model, *train).value();
    const WideSizes sizes = start->sizes().value();
    model.wide_rows = sizes.rows;
    weights = sizes.weights;
  }

  [[nodiscard]] ShardRows rows(ShardId shard) const {
    return start->rows()(shard, 0, model.wide_rows).value();
  }

  [[nodiscard]] std::vector<std::uint32_t> counts_of(const ShardMap& map, ShardId shard) const {
    std::vector<std::uint32_t> counts;
    for (std::uint32_t n = map.neurons(shard).begin; n < map.neurons(shard).end; ++n) {
      counts.push_back(label_counts[map.label_of_neuron(n)]);
    }
    return counts;
  }
};

// Trains all shards with a trainer of its own, on one instruction set and some threads.
struct WideBench {
  const WideRun& run;
  ShardMap map{run.model};
  RunPlan plan{run.model};
  ThreadPool pool;
  WideTrainer trainer;
  std::vector<LeaseRef> leases;

  WideBench(const WideRun& of, unsigned threads, SimdLevel level, std::vector<std::uint32_t> held)
      : run(of), pool(threads), trainer(run.model, pool, kernels_for(level)) {
    for (const std::uint32_t shard : held) load(ShardId{shard});
  }

  void load(ShardId shard) {
    LeaseGrant grant;
    grant.lease = {shard, LeaseEpoch{1}};
    grant.base_chunks = grant.chunks = 1;
    grant.label_counts = run.counts_of(map, shard);
    REQUIRE(trainer.begin_load(grant).ok());
    REQUIRE(trainer.load_chunk({grant.lease, 0, run.rows(shard)}).ok());
    REQUIRE(trainer.finish_load(grant.lease).ok());
    leases.push_back(grant.lease);
  }

  [[nodiscard]] TrainUnit unit(BatchIndex batch) const {
    TrainUnit unit;
    unit.leases = leases;
    UnitBatch of_batch;
    of_batch.batch = batch;
    QuantizedActivations codes;
    codes.examples = plan.examples_in(batch);
    of_batch.hidden = std::make_shared<const Bytes>(pack(codes));
    of_batch.output_rate = plan.rates(batch).output;
    of_batch.positives.offsets.push_back(0);
    for (const std::uint64_t point : plan.points_of(batch)) {
      std::vector<std::uint32_t> neurons;
      for (const std::uint32_t label : run.train->example(point).labels) {
        const std::uint32_t neuron = map.neuron_of_label(label);
        const bool is_held = std::ranges::any_of(leases, [&](const LeaseRef& lease) {
          return lease.shard == map.shard_of_neuron(neuron);
        });
        if (is_held) neurons.push_back(neuron);
      }
      std::ranges::sort(neurons);
      auto& all = of_batch.positives.neurons;
      all.insert(all.end(), neurons.begin(), neurons.end());
      of_batch.positives.offsets.push_back(static_cast<std::uint32_t>(all.size()));
    }
    unit.batches.push_back(std::move(of_batch));
    return unit;
  }

  ShardTrainer::UnitOutcome train(BatchIndex batch) {
    std::vector<ExampleView> examples;
    for (const std::uint64_t point : plan.points_of(batch)) {
      examples.push_back(run.train->example(point));
    }
    const TrainUnit unit = this->unit(batch);
    REQUIRE(trainer.check(unit).ok());
    const std::span<const ExampleView> views(examples);
    auto outcome = trainer.train(unit, {&views, 1}).value();
    REQUIRE(trainer.memory_bytes() <= memory_most());
    return outcome;
  }

  // The master counts on this for the shards that are held.
  [[nodiscard]] std::uint64_t memory_most() const {
    return trainer.leases().size() * WideTrainer::shard_bytes(run.model, run.weights) +
           WideTrainer::holder_bytes(run.model, run.weights);
  }

  // Every shard's outcome of every batch, and all commits, of the first `rounds` rounds.
  using Told = std::map<ShardId, std::pair<std::vector<ShardOutcome>, std::vector<SparseUpdate>>>;

  Told train_rounds(RoundIndex rounds) {
    Told told;
    for (BatchIndex batch = 0; batch < plan.round_begin(rounds); ++batch) {
      const auto outcome = train(batch);
      for (const ShardOutcome& of_shard : outcome.result.batches.at(0).shards) {
        told[of_shard.shard].first.push_back(of_shard);
      }
      for (const ShardCommit& commit : outcome.commits) {
        told[commit.lease.shard].second.push_back(commit.update);
      }
    }
    return told;
  }
};

}  // namespace

TEST_CASE("wide rows: a label begins as the scaled sum of its examples", "[wide]") {
  const WideRun run;
  const ShardMap map(run.model);
  for (std::uint32_t s = 0; s < run.model.output_shards; ++s) {
    const ShardRows rows = run.rows(ShardId{s});
    REQUIRE(check_rows(run.model, map, ShardId{s}, rows, RowsOf::kCheckpoint).ok());
    std::map<std::uint32_t, std::map<std::uint32_t, double>> weights;  // by neuron, feature
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      const std::uint32_t neuron = rows.codes[i * (kWideWeights + 1)];
      auto& of_neuron = weights[neuron];
      const bool is_first = of_neuron.empty();
      const std::uint32_t label = map.label_of_neuron(map.neurons(ShardId{s}).begin + neuron);
      REQUIRE(rows.values[i * (kWideWeights + 1) + kWideWeights] ==
              (is_first ? prior_log_odds(run.model.points, run.label_counts[label]) + 1 : 0.0F));
      for (std::size_t k = 0; k < kWideWeights; ++k) {
        const std::uint32_t feature = rows.codes[i * (kWideWeights + 1) + 1 + k];
        if (feature == run.model.features) continue;
        of_neuron[feature] = double{rows.values[i * (kWideWeights + 1) + k]};
      }
    }
    REQUIRE(weights.size() == map.neurons(ShardId{s}).size());
    for (const auto& [neuron, of_neuron] : weights) {
      const std::uint32_t label = map.label_of_neuron(map.neurons(ShardId{s}).begin + neuron);
      std::map<std::uint32_t, double> sums;
      std::map<std::uint32_t, double> having;  // examples that have a feature
      for (std::uint64_t point = 0; point < run.train->points(); ++point) {
        const ExampleView example = run.train->example(point);
        for (const std::uint32_t feature : example.features) ++having[feature];
        if (!std::ranges::binary_search(example.labels, label)) continue;
        double squares = 0;
        for (const float value : example.values) squares += double{value} * double{value};
        for (std::size_t k = 0; k < example.features.size(); ++k) {
          sums[example.features[k]] += double{example.values[k]} / std::sqrt(squares);
        }
      }
      for (auto& [feature, sum] : sums) {
        sum *= std::log((static_cast<double>(run.train->points()) + 1) / (having[feature] + 0.5));
      }
      REQUIRE(of_neuron.size() ==
              std::min<std::uint64_t>(sums.size(),
                                      wide_features_kept(run.model, run.label_counts[label])));
      double squares = 0;
      for (const auto& [feature, weight] : of_neuron) squares += sums[feature] * sums[feature];
      for (const auto& [feature, weight] : of_neuron) {
        REQUIRE(weight == Approx(run.model.wide_scale * sums[feature] / std::sqrt(squares)));
      }
    }
  }
}

TEST_CASE("wide rows: every thread count, instruction set and cut of leases gives the same bits",
          "[wide]") {
  const WideRun run;
  const WideBench::Told expected =
      WideBench(run, 1, SimdLevel::kScalar, {0, 1, 2, 3}).train_rounds(3);
  REQUIRE(expected.size() == 4);
  for (const SimdLevel level : available_simd_levels()) {
    REQUIRE(WideBench(run, 3, level, {0, 1, 2, 3}).train_rounds(3) == expected);
  }
  WideBench::Told apart = WideBench(run, 2, SimdLevel::kScalar, {0, 3}).train_rounds(3);
  apart.merge(WideBench(run, 1, SimdLevel::kScalar, {1, 2}).train_rounds(3));
  REQUIRE(apart == expected);
}

TEST_CASE("wide rows: training lowers the loss, and a step back gives it again", "[wide]") {
  const WideRun run;
  WideBench bench(run, 1, SimdLevel::kScalar, {0, 1, 2, 3});
  const auto sum = [](const WideBench::Told& told, std::size_t begin, std::size_t end) {
    std::int64_t loss = 0;
    for (const auto& [shard, pair] : told) {
      for (std::size_t i = begin; i < end; ++i) loss += pair.first[i].loss;
    }
    return loss;
  };
  const RoundIndex rounds = bench.plan.round_count();
  const WideBench::Told told = bench.train_rounds(rounds);
  const std::size_t epoch = bench.plan.batches_per_epoch();
  REQUIRE(sum(told, epoch, 2 * epoch) < sum(told, 0, epoch));

  const std::vector<OfferedShard> offered = bench.trainer.step_back(rounds - 1);
  REQUIRE(offered.size() == 4);
  WideBench again(run, 1, SimdLevel::kScalar, {0, 1, 2, 3});
  (void)again.train_rounds(rounds - 1);
  const std::vector<OfferedShard> expected = again.trainer.step_back(rounds - 1);
  for (std::size_t i = 0; i < offered.size(); ++i) REQUIRE(offered[i].digest == expected[i].digest);
}

TEST_CASE("wide rows: a shard that is handed over goes on to the same bits", "[wide]") {
  const WideRun run;
  WideBench whole(run, 1, SimdLevel::kScalar, {1});
  WideBench first(run, 1, SimdLevel::kScalar, {1});
  const BatchIndex end = whole.plan.round_end(0);
  std::vector<SparseUpdate> expected;
  for (BatchIndex batch = 0; batch < end; ++batch) {
    for (const ShardCommit& commit : whole.train(batch).commits) expected.push_back(commit.update);
  }
  // In the middle of the time between two changes of the lists.
  constexpr BatchIndex kMoved = 4;
  for (BatchIndex batch = 0; batch < kMoved; ++batch) (void)first.train(batch);
  const auto parts = first.trainer.hand_over(first.leases[0]).value();

  WideBench second(run, 2, SimdLevel::kScalar, {});
  LeaseGrant grant;
  grant.lease = {ShardId{1}, LeaseEpoch{2}};
  grant.next_batch = kMoved;
  grant.base_chunks = 1;
  grant.chunks = 1 + static_cast<std::uint32_t>(parts.size());
  grant.label_counts = run.counts_of(second.map, ShardId{1});
  REQUIRE(second.trainer.begin_load(grant).ok());
  REQUIRE(second.trainer.load_chunk({grant.lease, 0, run.rows(ShardId{1})}).ok());
  for (std::uint32_t part = 0; part < parts.size(); ++part) {
    REQUIRE(second.trainer.load_chunk({grant.lease, 1 + part, parts[part].rows}).ok());
  }
  REQUIRE(second.trainer.memory_bytes() <= second.memory_most());
  REQUIRE(second.trainer.finish_load(grant.lease).ok());
  second.leases = {grant.lease};
  std::vector<SparseUpdate> commits;
  for (BatchIndex batch = kMoved; batch < end; ++batch) {
    for (const ShardCommit& commit : second.train(batch).commits) commits.push_back(commit.update);
  }
  REQUIRE(commits == expected);
}

TEST_CASE("wide rows: a shard stepped back from any batch trains on to the same bits", "[wide]") {
  const WideRun run;
  const auto updates_of = [](const ShardTrainer::UnitOutcome& outcome) {
    std::vector<SparseUpdate> updates;
    for (const ShardCommit& commit : outcome.commits) updates.push_back(commit.update);
    return updates;
  };
  WideBench whole(run, 1, SimdLevel::kScalar, {1});
  const BatchIndex end = whole.plan.round_end(2);
  std::vector<std::vector<SparseUpdate>> expected;
  for (BatchIndex batch = 0; batch < end; ++batch) {
    expected.push_back(updates_of(whole.train(batch)));
  }
  for (BatchIndex at = 1; at < end; ++at) {
    CAPTURE(at);
    WideBench bench(run, 1, SimdLevel::kScalar, {1});
    for (BatchIndex batch = 0; batch < at; ++batch) (void)bench.train(batch);
    const RoundIndex round = bench.plan.round_of(at);
    // As far as it goes.
    const RoundIndex back = at == bench.plan.round_begin(round) ? 2 : 1;
    LeaseGrant grant;
    grant.lease = bench.leases[0];
    grant.base_round = round < back ? 0 : round - back;
    grant.next_batch = bench.plan.round_begin(grant.base_round);
    grant.is_held = true;
    REQUIRE(bench.trainer.step_back(grant.base_round).size() == 1);
    REQUIRE(bench.trainer.adopt(grant).ok());
    for (BatchIndex batch = grant.next_batch; batch < end; ++batch) {
      REQUIRE(updates_of(bench.train(batch)) == expected[batch]);
    }
  }
}

TEST_CASE("wide rows: a row takes memory for the weights it uses", "[wide]") {
  const WideRun run;
  const ShardMap map(run.model);
  const auto shard_of = [&](const ShardRows& rows) {
    WideShard shard(run.model, map, kernels_for(SimdLevel::kScalar), ShardId{0});
    REQUIRE(shard.load(rows).ok());
    shard.finish_loading();
    return shard.memory_bytes();
  };
  const ShardRows rows = run.rows(ShardId{0});
  ShardRows empty = rows;
  std::ranges::fill(empty.values, 0.0F);
  std::size_t used = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    for (std::size_t k = 1; k <= kWideWeights; ++k) {
      std::uint32_t& feature = empty.codes[i * (kWideWeights + 1) + k];
      if (std::exchange(feature, run.model.features) != run.model.features) ++used;
    }
  }
  REQUIRE(used > 0);
  REQUIRE(used <= run.weights.mean + run.weights.beyond);
  REQUIRE(shard_of(rows) - shard_of(empty) == used * 2 * sizeof(float));
}

TEST_CASE("wide rows: the master counts on twice a shard's memory at most", "[wide]") {
  const WideRun run;
  WideBench bench(run, 1, SimdLevel::kScalar, {0, 1, 2, 3});
  (void)bench.train_rounds(2);
  REQUIRE(bench.memory_most() < 2 * bench.trainer.memory_bytes());
}

TEST_CASE("wide rows: shards whose weights do not fit are refused as they come", "[wide]") {
  const WideRun run(20);
  const ShardMap map(run.model);
  ThreadPool pool(1);
  std::uint64_t held = 0;
  const auto load = [&](std::uint64_t memory_bytes) {
    volunteer::Executor executor(pool, memory_bytes);
    REQUIRE(executor.execute(volunteer::Reset{run.model, {}, {}}).ok());
    for (std::uint32_t s = 0; s < run.model.output_shards; ++s) {
      LeaseGrant grant;
      grant.lease = {ShardId{s}, LeaseEpoch{1}};
      grant.base_chunks = grant.chunks = 1;
      grant.label_counts = run.counts_of(map, ShardId{s});
      REQUIRE(executor.execute(Message(grant)).ok());
    }
    Result<std::vector<Message>> last = std::vector<Message>();
    for (std::uint32_t s = 0; s < run.model.output_shards && last; ++s) {
      last = executor.execute(
          Message(ShardChunk{{ShardId{s}, LeaseEpoch{1}}, 0, run.rows(ShardId{s})}));
    }
    held = executor.held_bytes();
    return last;
  };
  REQUIRE(load(run.model.output_shards * WideTrainer::shard_bytes(run.model, run.weights) +
               WideTrainer::holder_bytes(run.model, run.weights))
              .ok());
  const auto refused = load(held - 1);
  REQUIRE_FALSE(refused.ok());
  REQUIRE(refused.error().code == ErrorCode::kResources);
}

TEST_CASE("wide rows: exact scores are the sum of bias and shared features", "[wide]") {
  const WideRun run;
  WideBench bench(run, 2, SimdLevel::kScalar, {0, 1, 2, 3});
  EvalUnit unit;
  unit.leases = bench.leases;
  unit.top_k = 4;
  QuantizedActivations codes;
  codes.examples = 3;
  unit.hidden = std::make_shared<const Bytes>(pack(codes));
  const std::vector<ExampleView> examples{run.train->example(0), run.train->example(5),
                                          run.train->example(9)};
  REQUIRE(bench.trainer.check(unit).value() == 3);
  const EvalResult result = bench.trainer.evaluate(unit, examples).value();
  REQUIRE(result.top_k == 4);
  const UnitLengths scaled(examples, run.model.features);
  for (std::size_t e = 0; e < examples.size(); ++e) {
    std::vector<std::pair<float, std::uint32_t>> scores;
    for (std::uint32_t s = 0; s < 4; ++s) {
      WideShard shard(run.model, bench.map, kernels_for(SimdLevel::kScalar), ShardId{s});
      REQUIRE(shard.load(run.rows(ShardId{s})).ok());
      shard.finish_loading();
      for (std::uint32_t n = 0; n < shard.neurons().size(); ++n) {
        float score = shard.bias(n);
        const ExampleView& view = scaled.views()[e];
        for (std::size_t k = 0; k < view.features.size(); ++k) {
          const auto features = shard.features(n);
          const auto at = std::ranges::lower_bound(features, view.features[k]);
          if (at == features.end() || *at != view.features[k]) continue;
          score += view.values[k] * shard.weights(n)[at - features.begin()];
        }
        scores.emplace_back(-score, shard.neurons().begin + n);
      }
    }
    std::ranges::sort(scores);
    for (std::size_t i = 0; i < 4; ++i) {
      REQUIRE(result.best[e * 4 + i].neuron == scores[i].second);
      REQUIRE(result.best[e * 4 + i].score == -scores[i].first);
    }
  }
}

TEST_CASE("wide rows: rows that cannot be are refused with the row", "[wide]") {
  const WideRun run;
  const ShardMap map(run.model);
  const ShardRows sound = run.rows(ShardId{0});
  const auto refused = [&](const auto& spoil) {
    ShardRows rows = sound;
    spoil(rows);
    const auto checked = check_rows(run.model, map, ShardId{0}, rows, RowsOf::kCheckpoint);
    REQUIRE_FALSE(checked.ok());
    return checked.error().message;
  };
  REQUIRE(refused([&](ShardRows& rows) {
            rows.codes[0] = map.neurons(ShardId{0}).size();
          }).starts_with("row 0 is of neuron"));
  REQUIRE(refused([](ShardRows& rows) { std::swap(rows.codes[1], rows.codes[2]); }) ==
          "row 0 has features that do not ascend, or that the run does not have");
  REQUIRE(refused([&](ShardRows& rows) {
            rows.codes[kWideWeights] = run.model.features + 1;
          }).starts_with("row 0 has features"));
}

}  // namespace gleaner
