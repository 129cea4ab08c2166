// Training as it is, not its kernels alone: steps of output shards, a round's cost of a row, the
// input layer. By the training code itself, on layers that fit a cache and layers that fit none.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "common/counter_random.hpp"
#include "common/thread_pool.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/kernels.hpp"
#include "common/train/output_shard.hpp"
#include "tests/bench/machine/bench_layer.hpp"
#include "tests/bench/machine/bench_loops.hpp"
#include "tests/bench/machine/bench_step.hpp"
#include "tests/bench/machine/bench_timing.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kTrainingExamples = 256;
constexpr std::uint32_t kBatches = 8;  // one after the other, so that each finds its rows cold
constexpr std::uint32_t kParts = 16;   // the same examples as this number of batches
constexpr std::uint32_t kFeaturesPerExample = 32;

// Seconds of the parts of a step.
struct StepParts {
  double visit = 0;   // an active neuron of an example
  double row = 0;     // a row visited, a batch
  double scan = 0;    // a row whose visits are looked for, a batch
  double finish = 0;  // an example's gradient in a shard
};

// The examples of all batches, each in `parts`, on all shards.
struct Pass {
  double seconds = 0;
  double parts = 0;
  double visits = 0;
  double rows = 0;  // visited, summed over the parts
};

Pass time_pass(BenchLayer& layer, std::uint32_t parts, double budget) {
  std::deque<QuantizedActivations> codes;
  std::vector<QueryBatch> batches;
  const std::uint32_t size = kTrainingExamples / parts;
  for (std::uint32_t b = 0; b < kBatches * parts; ++b) {
    codes.push_back(clustered_codes(layer.config.hidden, b * size, (b + 1) * size));
    batches.emplace_back(layer.config, &layer.sim_hash).prepare(0, codes.back(), layer.pool);
  }
  Pass pass;
  pass.parts = kBatches * parts;
  pass.seconds = best_seconds(budget, [&] {
    pass.visits = pass.rows = 0;
    for (const QueryBatch& batch : batches) {
      pass.visits += static_cast<double>(layer.train(batch));
      pass.rows += static_cast<double>(layer.rows_visited());
    }
  });
  return pass;
}

double without(const StepParts& known, const BenchLayer& layer, const Pass& pass) {
  return pass.seconds - pass.parts * known.scan * layer.config.labels -
         known.finish * kBatches * kTrainingExamples * kBenchShards;
}

double time_scan(BenchLayer& layer, double budget) {
  ModelConfig config = layer.config;
  config.active_cap = 1;
  const QuantizedActivations codes = clustered_codes(config.hidden, 0, 1);
  QueryBatch batch(config, &layer.sim_hash);
  batch.prepare(0, codes, layer.pool);
  ActiveSetChooser chooser(config);
  ActiveSets active;
  ShardCounts counts;
  PairLists lists;
  std::vector<HeldShard> asked;
  std::vector<RowPart> parts;
  const HashTables& tables = layer.layer.tables();
  for (std::size_t s = 0; s < layer.held.size(); ++s) {
    const OutputShard& shard = *layer.held[s];
    asked.push_back({shard.id(), shard.neurons(), true});
    cut_into_parts(s, tables.begin(s), shard.rows().rows(), 1, parts);
  }
  const Positives none = no_positives(1);
  return best_seconds(budget,
                      [&] {
                        counts.clear(1, asked.size());
                        chooser.choose(batch, none, {asked, tables}, {0, 1}, active, counts);
                        lists.build({&active, 1}, parts, layer.pool);
                      }) /
         config.labels;
}

double time_finish(const Kernels& kernels, const BenchShape& shape) {
  const QuantizedActivations codes = clustered_codes(shape.hidden, 0, kTrainingExamples);
  AlignedVector<std::uint32_t> sums(codes.codes.size());
  std::vector<std::uint32_t> check(kCheckWords);
  return best_seconds(
             shape.budget,
             [&] {
               for (std::size_t e = 0; e < kTrainingExamples; ++e) {
                 const std::size_t first = e * shape.hidden;
                 std::uint32_t* const own = sums.data() + first;
                 kernels.round_gradient(
                     {.width = shape.hidden, .sums = &own, .sum_count = 1, .check = check.data()});
               }
             }) /
         kTrainingExamples;
}

// A step's time is one amount per visit and another per row visited, besides what is known: the
// more batches the same examples come in, the more rows. In a layer that is near, the two tell
// apart.
double time_visit(BenchLayer& layer, const StepParts& known, double budget) {
  const Pass one = time_pass(layer, 1, budget);
  const Pass many = time_pass(layer, kParts, budget);
  const double row =
      (without(known, layer, many) - without(known, layer, one)) / (many.rows - one.rows);
  return std::max(0.0, without(known, layer, one) - std::max(0.0, row) * one.rows) / one.visits;
}

// Having a row at hand is the cost that depends on the layer: its weights, its entries.
double time_row(BenchLayer& layer, const StepParts& known, double budget) {
  const Pass pass = time_pass(layer, 1, budget);
  const double rest = without(known, layer, pass) - known.visit * pass.visits;
  return std::max(0.0, rest) / pass.rows;
}

// Seconds that a round spends on a touched row: for its commit, and for hashing it again.
struct RoundRow {
  double commit = 0;
  double rehash = 0;
};

RoundRow time_round_row(BenchLayer& layer, const BenchShape& shape) {
  std::vector<float> values(shape.hidden + std::size_t{1});
  float step = 0;
  const auto move_all = [&] {
    step += 0.01F;
    for (OutputShard& shard : layer.shards) {
      for (std::uint32_t row = 0; row < shard.rows().rows(); ++row) {
        shard.rows().read(row, values);
        values[row % shape.hidden] += step;
        shard.load_touched(row, values, 0.1F, {}, true);
      }
    }
  };
  double round = std::numeric_limits<double>::infinity();
  double hash = round;
  for (int i = 0; i < 3; ++i) {
    double start = processor_seconds();
    move_all();
    for (OutputShard& shard : layer.shards) (void)shard.commit(layer.scratch[0]);
    round = std::min(round, processor_seconds() - start);
    move_all();
    start = processor_seconds();
    for (OutputShard& shard : layer.shards) shard.rehash(layer.scratch[0]);
    hash = std::min(hash, processor_seconds() - start);
  }
  return {round / layer.config.labels, hash / layer.config.labels};
}

// Points of some frequent features and many rare ones, as words are.
struct InputBatch {
  explicit InputBatch(Rng& rng) : features(kTrainingExamples) {
    for (auto& list : features) {
      for (std::uint32_t f = 0; f < kFeaturesPerExample; ++f) {
        list.push_back(
            static_cast<std::uint32_t>(rng.next_below(rng.next_below(kBenchFeatures) + 1)));
      }
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      entries += static_cast<double>(list.size());
      examples.push_back({{}, list, std::span(values).first(list.size())});
    }
  }

  std::vector<std::vector<std::uint32_t>> features;
  std::vector<float> values = std::vector<float>(kFeaturesPerExample, 0.2F);
  std::vector<ExampleView> examples;
  double entries = 0;
};

std::vector<BenchLine> bench_input(const Kernels& kernels, const BenchShape& shape) {
  ModelConfig config =
      layer_of(shape.hidden, kBenchRowsPerBucket * kBenchShards, kTrainingExamples);
  config.points = std::uint64_t{kTrainingExamples} * kBatches;
  config.round_batches = kBatches;
  ThreadPool pool(1);
  InputLayer layer(config, pool, kernels);
  Rng rng(5, Purpose::kTest);
  std::deque<InputBatch> batches;
  double entries = 0;
  for (std::uint32_t b = 0; b < kBatches; ++b) entries += batches.emplace_back(rng).entries;
  std::vector<QuantizedActivations> codes(kBatches);
  const double forward = best_seconds(shape.budget, [&] {
    for (std::uint32_t b = 0; b < kBatches; ++b) codes[b] = layer.forward(batches[b].examples, b);
  });
  const std::vector<std::int32_t> gradient(codes[0].codes.size(), 100);
  const double backward = best_seconds(shape.budget, [&] {
    for (std::uint32_t b = 0; b < kBatches; ++b) {
      layer.backward(b, config.input_rate, batches[b].examples, codes[b], gradient);
    }
  });
  double touched = 0;
  double start = processor_seconds();
  for (const SparseUpdate& part : layer.commit(ShardId{config.output_shards})) {
    touched += static_cast<double>(part.rows.size());
  }
  const double commit = processor_seconds() - start;
  return {{"input layer, forward", "feature of an example", forward / entries, 0, ""},
          {"input layer, backward and update", "feature of an example", backward / entries, 0, ""},
          {"input layer, commit a row", "row and round", commit / std::max(touched, 1.0), 0, ""}};
}

}  // namespace

std::vector<BenchLine> bench_training(const Kernels& kernels, const BenchShape& shape) {
  std::vector<BenchLine> lines;
  const auto add = [&](std::vector<BenchLine> more) {
    for (BenchLine& line : more) lines.push_back(std::move(line));
  };
  StepParts known;
  known.finish = time_finish(kernels, shape);
  RoundRow round;
  for (const std::uint32_t rows : shape.layers) {
    {
      BenchLayer layer(layer_of(shape.hidden, rows, kTrainingExamples), kernels);
      if (rows == shape.layers.front()) {
        known.scan = time_scan(layer, shape.budget);
        known.visit = time_visit(layer, known, shape.budget);
        lines.push_back({"visit a row", "visit", known.visit, 0, ""});
      }
      known.row = time_row(layer, known, shape.budget);
      round = time_round_row(layer, shape);
    }
    lines.push_back({fmt::format("fetch and update a row, layer of {} rows", rows), "row and batch",
                     known.row, 0, ""});
    add(bench_step(kernels, shape, rows));
  }
  lines.push_back({"keep, commit and hash a row", "row and round", round.commit, 0, ""});
  lines.push_back({"hash a changed row anew, tables and all", "row", round.rehash, 0, ""});
  lines.push_back({"look for a row's visits", "row and batch", known.scan, 0, ""});
  lines.push_back({"finish a gradient in a shard", "example and shard", known.finish, 0, ""});
  add(bench_input(kernels, shape));
  return lines;
}

}  // namespace gleaner
