// Wide rows: where they start, a shard's way through rounds, and what it is asked.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>

#include "common/counter_random.hpp"
#include "common/model/row_checks.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/prepared_examples.hpp"
#include "common/train/wide/wide_index.hpp"
#include "storage/keep/wide_start.hpp"
#include "tests/support/wide_run.hpp"
#include "volunteer/executor.hpp"

namespace gleaner {
namespace {

// Every shard's outcome of every batch, and all commits.
using Told = std::map<ShardId, std::pair<std::vector<ShardOutcome>, std::vector<SparseUpdate>>>;

// Trains some shards with a trainer of its own, on one instruction set.
struct WideBench {
  const WideRun& run;
  RunPlan plan{run.model};
  WideTrainer trainer;
  std::vector<LeaseRef> leases;

  WideBench(const WideRun& of, SimdLevel level, const std::vector<std::uint32_t>& held)
      : run(of), trainer(run.model, kernels_for(level)) {
    for (const std::uint32_t shard : held) {
      const LeaseGrant grant = run.grant(shard);
      REQUIRE(trainer.begin_load(grant).ok());
      REQUIRE(trainer.load_chunk(run.chunk(grant.lease)).ok());
      REQUIRE(trainer.finish_load(grant.lease).ok());
      leases.push_back(grant.lease);
    }
  }

  // With `is_apart`, what was kept is trained after every batch.
  ShardTrainer::UnitOutcome train(const LeaseRef& lease, RoundIndex round, bool is_apart,
                                  std::vector<ShardOutcome>& outcomes) {
    const TrainUnit unit = run.unit(lease, round);
    const float factor = trainer.check(unit).value();
    const auto way = trainer.begin(unit).value();
    for (BatchIndex batch = plan.round_begin(round); batch < plan.round_end(round); ++batch) {
      way->train(run.batch(batch), trainer.rate(batch, factor));
      if (is_apart) way->flush();
    }
    REQUIRE(way->is_done());
    REQUIRE(trainer.memory_bytes() + way->memory_bytes() <= memory_most());
    outcomes.insert(outcomes.end(), way->outcomes().begin(), way->outcomes().end());
    return trainer.finish(unit, *way, way->commit()).value();
  }

  // The master counts on this for the shards that are held.
  [[nodiscard]] std::uint64_t memory_most() const {
    return trainer.leases().size() * WideTrainer::shard_bytes(run.model, run.weights) +
           WideTrainer::holder_bytes(run.model, run.weights);
  }

  Told train_rounds(RoundIndex rounds, bool is_apart = false) {
    Told told;
    for (const LeaseRef& lease : leases) {
      auto& [outcomes, updates] = told[lease.shard];
      for (RoundIndex round = 0; round < rounds; ++round) {
        for (ShardCommit& commit : train(lease, round, is_apart, outcomes).commits) {
          updates.push_back(std::move(commit.update));
        }
      }
    }
    return told;
  }
};

std::uint64_t digest(const Told& told) {
  std::uint64_t sum = 0;
  const auto add = [&](std::uint64_t word) { sum = mix64(sum ^ word); };
  for (const auto& [shard, pair] : told) {
    for (const ShardOutcome& outcome : pair.first) {
      add(outcome.gradient_digest);
      add(static_cast<std::uint64_t>(outcome.loss));
      add(outcome.active);
    }
    for (const SparseUpdate& update : pair.second) {
      for (const std::uint32_t row : update.rows) add(row);
      for (const float scale : update.scales) add(std::bit_cast<std::uint32_t>(scale));
      for (const auto level : update.levels) add(static_cast<std::uint8_t>(level));
      for (const auto bias : update.biases) add(bias);
    }
  }
  return sum;
}

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

TEST_CASE(
    "wide rows: every instruction set, cut of leases and time of training gives the same bits",
    "[wide]") {
  const WideRun run;
  const Told expected = WideBench(run, SimdLevel::kScalar, {0, 1, 2, 3}).train_rounds(3);
  REQUIRE(expected.size() == 4);
  for (const SimdLevel level : available_simd_levels()) {
    REQUIRE(WideBench(run, level, {0, 1, 2, 3}).train_rounds(3, true) == expected);
  }
  Told apart = WideBench(run, SimdLevel::kScalar, {0, 3}).train_rounds(3);
  apart.merge(WideBench(run, SimdLevel::kScalar, {1, 2}).train_rounds(3));
  REQUIRE(apart == expected);
}

TEST_CASE("wide rows: each way of choosing neurons gives the bits that it always gave", "[wide]") {
  const auto digest_of = [](Sampling sampling, std::uint32_t shards, float dropout) {
    WideRun run(shards);
    run.model.sampling = sampling;
    run.model.feature_dropout = dropout;
    std::vector<std::uint32_t> all(shards);
    std::iota(all.begin(), all.end(), 0);
    return digest(WideBench(run, SimdLevel::kScalar, all).train_rounds(2));
  };
  CHECK(digest_of(Sampling::kLsh, 1, 0.0F) == 0x78b9b823858d1298);
  CHECK(digest_of(Sampling::kLsh, 4, 0.0F) == 0x376583618c8ae3d3);
  CHECK(digest_of(Sampling::kLsh, 16, 0.25F) == 0x87966ea3319bf3ab);
  CHECK(digest_of(Sampling::kAll, 4, 0.0F) == 0x3edefb7b2e3da52e);
}

TEST_CASE("wide rows: a neuron whose bias exceeds the least score is trained on every example",
          "[wide]") {
  WideRun run;
  const auto train = [&] {
    return WideBench(run, SimdLevel::kScalar, {0, 1, 2, 3}).train_rounds(2);
  };
  run.model.sampling = Sampling::kAll;
  const Told whole = train();
  run.model.sampling = Sampling::kLsh;
  REQUIRE(train() != whole);
  run.model.wide_score_min = -100;
  REQUIRE(train() == whole);
}

TEST_CASE("wide rows: the trained rows do not depend on the number of shards", "[wide]") {
  const auto rows_by_label = [](std::uint32_t shards) {
    WideRun run(shards);
    std::vector<std::uint32_t> all(shards);
    std::iota(all.begin(), all.end(), 0);
    WideBench bench(run, SimdLevel::kScalar, all);
    REQUIRE_FALSE(bench.train_rounds(2).empty());
    const ShardMap map(run.model);
    std::map<std::uint32_t, std::vector<std::uint32_t>> rows;
    for (const LeaseRef& lease : bench.leases) {
      const NeuronRange neurons = map.neurons(lease.shard);
      const auto shard = bench.trainer.find_shard(lease).value();
      for (std::uint32_t n = 0; n < neurons.size(); ++n) {
        auto& row = rows[map.label_of_neuron(neurons.begin + n)];
        row.push_back(std::bit_cast<std::uint32_t>(shard->bias(n)));
        for (std::size_t i = 0; i < shard->features(n).size(); ++i) {
          row.push_back(shard->features(n)[i]);
          row.push_back(std::bit_cast<std::uint32_t>(shard->weights(n)[i]));
        }
      }
    }
    return rows;
  };
  const auto whole = rows_by_label(1);
  REQUIRE(rows_by_label(4) == whole);
  REQUIRE(rows_by_label(13) == whole);
}

TEST_CASE("wide rows: a unit's result has the first batch, and all others together", "[wide]") {
  const WideRun run;
  WideBench bench(run, SimdLevel::kScalar, {2});
  std::vector<ShardOutcome> outcomes;
  const auto outcome = bench.train(bench.leases[0], 0, false, outcomes);
  REQUIRE(outcomes.size() == 5);
  REQUIRE(outcome.result.unit == run.unit(bench.leases[0], 0).unit);
  REQUIRE(outcome.result.batches.size() == 2);
  REQUIRE(outcome.result.batches[0] == BatchResult{0, {outcomes[0]}, {}});
  REQUIRE(outcome.result.batches[1].batch == 1);
  ShardOutcome others{.shard = ShardId{2}};
  for (std::size_t i = 1; i < outcomes.size(); ++i) {
    others.gradient_digest += outcomes[i].gradient_digest;
    others.loss += outcomes[i].loss;
    others.active += outcomes[i].active;
  }
  REQUIRE(outcome.result.batches[1].shards == std::vector<ShardOutcome>{others});
  REQUIRE(outcome.commits.size() == 1);
  REQUIRE(outcome.commits[0].round == 0);

  WideRun single;
  single.model.round_batches = 1;
  WideBench one(single, SimdLevel::kScalar, {2});
  REQUIRE(one.train(one.leases[0], 0, false, outcomes).result.batches.size() == 1);
}

TEST_CASE("wide rows: a unit that is no shard-round is refused in words", "[wide]") {
  const WideRun run;
  WideBench bench(run, SimdLevel::kScalar, {0, 1});
  const auto refused = [&](const auto& spoil) {
    TrainUnit unit = run.unit(bench.leases[0], 1);
    spoil(unit);
    const auto checked = bench.trainer.check(unit);
    REQUIRE_FALSE(checked.ok());
    return checked.error().message;
  };
  using Catch::Contains;
  REQUIRE(bench.trainer.check(run.unit(bench.leases[0], 1)).value() == 1.0F);
  REQUIRE(bench.trainer.check(run.unit(bench.leases[0], 1, 3)).value() == 0.125F);
  REQUIRE_THAT(refused([&](TrainUnit& unit) { unit.leases.push_back(bench.leases[1]); }),
               Contains("2 shards and 1 batches"));
  REQUIRE_THAT(refused([](TrainUnit& unit) { unit.batches.push_back(unit.batches[0]); }),
               Contains("1 shards and 2 batches"));
  REQUIRE_THAT(refused([](TrainUnit& unit) { ++unit.batches[0].batch; }),
               Contains("batch 6 begins no round"));
  REQUIRE_THAT(refused([](TrainUnit& unit) { unit.batches[0].batch = 1'000'000; }),
               Contains("begins no round"));
  REQUIRE_THAT(refused([](TrainUnit& unit) {
                 unit.batches[0].positives = {{0, 1}, {0}};
               }),
               Contains("brings examples"));
  REQUIRE_THAT(refused([](TrainUnit& unit) { unit.batches[0].output_rate *= 0.75F; }),
               Contains("by no number of times"));
  REQUIRE_THAT(refused([](TrainUnit& unit) { unit.leases[0].epoch = LeaseEpoch{9}; }),
               Contains("not held"));
  // In order: round 1 does not come first.
  REQUIRE(bench.trainer.begin(run.unit(bench.leases[0], 1)).error().code == ErrorCode::kProtocol);
}

TEST_CASE("wide rows: training lowers the loss, and a step back gives it again", "[wide]") {
  const WideRun run;
  WideBench bench(run, SimdLevel::kScalar, {0, 1, 2, 3});
  const auto sum = [](const Told& told, std::size_t begin, std::size_t end) {
    std::int64_t loss = 0;
    for (const auto& [shard, pair] : told) {
      for (std::size_t i = begin; i < end; ++i) loss += pair.first[i].loss;
    }
    return loss;
  };
  const RoundIndex rounds = bench.plan.round_count();
  const Told told = bench.train_rounds(rounds);
  const std::size_t epoch = bench.plan.batches_per_epoch();
  REQUIRE(sum(told, epoch, 2 * epoch) < sum(told, 0, epoch));

  const std::vector<OfferedShard> offered = bench.trainer.step_back(rounds - 1);
  REQUIRE(offered.size() == 4);
  WideBench again(run, SimdLevel::kScalar, {0, 1, 2, 3});
  (void)again.train_rounds(rounds - 1);
  const std::vector<OfferedShard> expected = again.trainer.step_back(rounds - 1);
  for (std::size_t i = 0; i < offered.size(); ++i) REQUIRE(offered[i].digest == expected[i].digest);
}

TEST_CASE("wide rows: a shard is handed over without rows, and lent at a round's beginning alone",
          "[wide]") {
  const WideRun run;
  WideBench bench(run, SimdLevel::kScalar, {1});
  (void)bench.train_rounds(1);
  const auto parts = bench.trainer.hand_over(bench.leases[0]).value();
  REQUIRE(parts.size() == 1);
  REQUIRE(parts[0] == HandOver{bench.leases[0], 1, bench.plan.round_begin(1), 0, 1, {}});
  LeaseGrant grant = run.grant(1, 2);
  grant.next_batch = 2;
  ++grant.chunks;
  REQUIRE(bench.trainer.begin_load(grant).error().code == ErrorCode::kProtocol);
}

TEST_CASE("wide rows: a shard stepped back from any batch trains on to the same bits", "[wide]") {
  const WideRun run;
  const Told expected = WideBench(run, SimdLevel::kScalar, {1}).train_rounds(4);
  const std::vector<SparseUpdate>& updates = expected.at(ShardId{1}).second;
  for (RoundIndex rounds = 0; rounds < 3; ++rounds) {
    for (BatchIndex within = 0; within < 4; ++within) {
      CAPTURE(rounds, within);
      WideBench bench(run, SimdLevel::kScalar, {1});
      (void)bench.train_rounds(rounds);
      {
        const auto way = bench.trainer.begin(run.unit(bench.leases[0], rounds)).value();
        const BatchIndex first = bench.plan.round_begin(rounds);
        const BatchIndex end = std::min(first + within, bench.plan.round_end(rounds));
        for (BatchIndex batch = first; batch < end; ++batch) {
          way->train(run.batch(batch), bench.trainer.rate(batch, 1));
          if (batch % 2 == 0) way->flush();
        }
      }
      // As far as it goes.
      LeaseGrant grant;
      grant.lease = bench.leases[0];
      const RoundIndex back = within == 0 ? 2 : 1;
      grant.base_round = rounds < back ? 0 : rounds - back;
      grant.next_batch = bench.plan.round_begin(grant.base_round);
      grant.is_held = true;
      REQUIRE(bench.trainer.step_back(grant.base_round).size() == 1);
      REQUIRE(bench.trainer.adopt(grant).ok());
      std::vector<ShardOutcome> outcomes;
      for (RoundIndex round = grant.base_round; round < 4; ++round) {
        const auto outcome = bench.train(grant.lease, round, false, outcomes);
        REQUIRE(outcome.commits.size() == 1);
        REQUIRE(outcome.commits[0].update == updates[round]);
      }
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
  WideBench bench(run, SimdLevel::kScalar, {0, 1, 2, 3});
  (void)bench.train_rounds(2);
  REQUIRE(4 * WideTrainer::shard_bytes(run.model, run.weights) < 2 * bench.trainer.memory_bytes());
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
  const ShardMap map(run.model);
  WideBench bench(run, SimdLevel::kScalar, {0, 1, 2, 3});
  const std::vector<ExampleView> examples{run.train->example(0), run.train->example(5),
                                          run.train->example(9)};
  const WideBatch prepared = prepare_test(run.model, examples);
  std::vector<std::shared_ptr<WideShard>> shards;
  std::vector<const WideShard*> all;
  std::vector<EvalResult> results;
  for (const LeaseRef& lease : bench.leases) {
    const EvalUnit unit = run.evaluation(lease, 0, 3);
    REQUIRE(bench.trainer.check(unit).value() == 3);
    shards.push_back(bench.trainer.find_shard(lease).value());
    all.push_back(shards.back().get());
    results.push_back(score(unit, *shards.back(), run.model.features, prepared));
    REQUIRE(results.back().top_k == 3);
  }
  const WideIndex index(run.model.features, all);
  WideIndex::Scratch scratch;
  const UnitLengths scaled(examples, run.model.features);
  for (std::size_t e = 0; e < examples.size(); ++e) {
    std::vector<std::pair<float, std::uint32_t>> scores;
    std::vector<std::pair<float, std::uint32_t>> of_all;
    for (std::size_t s = 0; s < 4; ++s) {
      const WideShard& shard = *shards[s];
      scores.clear();
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
      of_all.insert(of_all.end(), scores.begin(), scores.end());
      std::ranges::sort(scores);
      for (std::size_t i = 0; i < 3; ++i) {
        REQUIRE(results[s].best[e * 3 + i].neuron == scores[i].second);
        REQUIRE(results[s].best[e * 3 + i].score == -scores[i].first);
      }
    }
    std::ranges::sort(of_all);
    std::vector<ScoredNeuron> best(5);
    index.top(scaled.views()[e], best, scratch);
    for (std::size_t i = 0; i < 5; ++i) {
      REQUIRE(best[i].neuron == of_all[i].second);
      REQUIRE(best[i].score == -of_all[i].first);
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
