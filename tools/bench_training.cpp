// Training as it is, not its kernels alone: steps of output shards, a round's cost of a row, the
// input layer. By the training code itself, on layers that fit a cache and layers that fit none.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <memory>

#include "common/counter_random.hpp"
#include "common/initial_weights.hpp"
#include "common/kernels/kernels.hpp"
#include "common/lsh/hash_family.hpp"
#include "common/shard_map.hpp"
#include "common/thread_pool.hpp"
#include "tools/bench_loops.hpp"
#include "tools/bench_timing.hpp"
#include "volunteer/train/gradient_digest.hpp"
#include "volunteer/train/input_layer.hpp"
#include "volunteer/train/output_shard.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kExamples = 256;
constexpr std::uint32_t kBatches = 8;  // one after the other, so that each finds its rows cold
constexpr std::uint32_t kParts = 16;   // the same examples as so many batches
constexpr std::uint32_t kShards = 16;
constexpr std::uint32_t kActive = 1000;
constexpr std::uint32_t kRowsPerBucket = 200;
constexpr std::uint32_t kClusters = 200;
constexpr std::uint32_t kFeatures = 100'000;
constexpr std::uint32_t kFeaturesPerExample = 32;

// ReLU-like codes around cluster centres, about half of them off, so that buckets are used as
// unevenly as those of a trained layer.
HiddenCodes clustered_codes(std::uint32_t hidden, std::uint32_t begin, std::uint32_t end) {
  HiddenCodes codes{end - begin, hidden, std::vector<float>(end - begin, 0.01F), {}};
  for (std::uint32_t e = begin; e < end; ++e) {
    Rng rng(e, Purpose::kTest);
    const std::uint64_t cluster = rng.next_below(kClusters);
    for (std::uint32_t i = 0; i < hidden; ++i) {
      const auto centre =
          static_cast<std::int64_t>(below(counter_random(1, Purpose::kTest, cluster, i), 400));
      const auto value = centre + static_cast<std::int64_t>(rng.next_below(200)) - 300;
      codes.codes.push_back(static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255)));
    }
  }
  return codes;
}

ModelConfig layer_of(std::uint32_t hidden, std::uint32_t rows) {
  ModelConfig config;
  config.points = kExamples;
  config.round_batches = 1;
  config.features = kFeatures;
  config.labels = rows;
  config.hidden = hidden;
  config.output_shards = kShards;
  config.batch_examples = kExamples;
  config.hash_bits = static_cast<std::uint32_t>(std::bit_width(rows / kRowsPerBucket)) - 1;
  config.active_cap = kActive;
  return config;
}

// A layer with its initial rows, hashed.
struct Layer {
  Layer(const ModelConfig& model, const Kernels& kernels)
      : config(model),
        map(config),
        family(make_hash_family(config, kernels)),
        context{config, map, kernels, family.get()},
        scratch(config) {
    std::vector<float> values(config.hidden + std::size_t{1});
    for (std::uint32_t s = 0; s < kShards; ++s) {
      OutputShard& shard = shards.emplace_back(context, ShardId{s});
      for (std::uint32_t row = 0; row < shard.rows().rows(); ++row) {
        initial_row(config, map, shard.id(), row, 1, values);
        shard.load_initial(row, values);
      }
      shard.finish_loading(pool, {&scratch, 1});
    }
  }

  const ModelConfig config;
  const ShardMap map;
  const std::unique_ptr<HashFamily> family;
  const ShardContext context;
  ThreadPool pool{1};
  std::deque<OutputShard> shards;
  ShardScratch scratch;
};

Positives no_positives(std::uint32_t examples) {
  Positives none;
  none.offsets.resize(examples + std::size_t{1});
  return none;
}

// The examples of all batches, each in `parts`, on all shards.
struct Pass {
  double seconds = 0;
  double parts = 0;
  double visits = 0;
  double rows = 0;  // visited, summed over the parts
};

Pass time_pass(Layer& layer, std::uint32_t parts, double budget) {
  std::deque<HiddenCodes> codes;
  std::vector<QueryBatch> batches;
  const std::uint32_t size = kExamples / parts;
  for (std::uint32_t b = 0; b < kBatches * parts; ++b) {
    codes.push_back(clustered_codes(layer.config.hidden, b * size, (b + 1) * size));
    batches.emplace_back(layer.config, layer.family.get()).prepare(0, codes.back(), layer.pool);
  }
  const Positives none = no_positives(size);
  Pass pass;
  pass.parts = kBatches * parts;
  pass.seconds = best_seconds(budget, [&] {
    pass.visits = pass.rows = 0;
    for (const QueryBatch& batch : batches) {
      for (OutputShard& shard : layer.shards) {
        pass.visits += static_cast<double>(shard.train(batch, none, 1e-6F, layer.scratch).active);
        pass.rows += static_cast<double>(layer.scratch.active.rows().size());
      }
    }
  });
  return pass;
}

// Seconds: of a visit, of a row whose visits are looked for, of an example's gradient in a shard.
struct StepParts {
  double visit = 0;
  double scan = 0;
  double finish = 0;
};

double without(const StepParts& known, const Layer& layer, const Pass& pass) {
  return pass.seconds - pass.parts * known.scan * layer.config.labels -
         known.finish * kBatches * kExamples * kShards;
}

double time_scan(Layer& layer, double budget) {
  ModelConfig config = layer.config;
  config.active_cap = 1;
  const HiddenCodes codes = clustered_codes(config.hidden, 0, 1);
  QueryBatch batch(config, layer.family.get());
  batch.prepare(0, codes, layer.pool);
  ActiveSets active(config);
  const Positives none = no_positives(1);
  return best_seconds(budget,
                      [&] {
                        for (const OutputShard& shard : layer.shards) {
                          active.build(batch, none, shard.id(), shard.neurons(), shard.tables());
                        }
                      }) /
         config.labels;
}

double time_finish(const Kernels& kernels, const BenchShape& shape) {
  const HiddenCodes codes = clustered_codes(shape.hidden, 0, kExamples);
  AlignedVector<float> gradient(codes.codes.size());
  std::vector<std::int32_t> steps(codes.codes.size());
  volatile std::uint64_t digest = 0;
  return best_seconds(shape.budget,
                      [&] {
                        gradient.assign(gradient.size(), 0.0F);
                        kernels.quantise_gradient(gradient.data(), codes.codes.data(), 1024.0F,
                                                  1e6F, steps.data(), steps.size());
                        digest = gradient_digest(steps);
                      }) /
         kExamples;
}

// A step's time is so much a visit and so much a row visited, besides what is known: the more
// batches the same examples come in, the more rows. In a layer that is near, the two tell apart.
double time_visit(Layer& layer, const StepParts& known, double budget) {
  const Pass one = time_pass(layer, 1, budget);
  const Pass many = time_pass(layer, kParts, budget);
  const double row =
      (without(known, layer, many) - without(known, layer, one)) / (many.rows - one.rows);
  return std::max(0.0, without(known, layer, one) - std::max(0.0, row) * one.rows) / one.visits;
}

// What it takes to have a row at hand is what depends on the layer: its weights, its entries.
BenchLine bench_rows_visited(Layer& layer, const StepParts& known, double budget) {
  const Pass pass = time_pass(layer, 1, budget);
  const double rest = without(known, layer, pass) - known.visit * pass.visits;
  return {fmt::format("fetch and update a row, layer of {} rows", layer.config.labels),
          "row and batch", std::max(0.0, rest) / pass.rows, 0, ""};
}

// What a row costs that a round touches, and one that is hashed anew between.
std::vector<BenchLine> bench_rows(Layer& layer, const BenchShape& shape) {
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
  std::size_t parts = 0;
  double round = std::numeric_limits<double>::infinity();
  double hash = round;
  for (int i = 0; i < 3; ++i) {
    double start = processor_seconds();
    move_all();
    for (OutputShard& shard : layer.shards) parts += shard.commit(layer.scratch).size();
    round = std::min(round, processor_seconds() - start);
    move_all();
    start = processor_seconds();
    for (OutputShard& shard : layer.shards) shard.rehash(layer.scratch);
    hash = std::min(hash, processor_seconds() - start);
  }
  const double rows = layer.config.labels;
  if (parts == 0) return {};
  return {{"keep, commit and hash a row", "row and round", round / rows, 0, ""},
          {"hash a changed row anew, tables and all", "row", hash / rows, 0, ""}};
}

// Points of some frequent features and many rare ones, as words are.
struct InputBatch {
  explicit InputBatch(Rng& rng) : features(kExamples) {
    for (auto& list : features) {
      for (std::uint32_t f = 0; f < kFeaturesPerExample; ++f) {
        list.push_back(static_cast<std::uint32_t>(rng.next_below(rng.next_below(kFeatures) + 1)));
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
  ModelConfig config = layer_of(shape.hidden, kRowsPerBucket * kShards);
  config.points = std::uint64_t{kExamples} * kBatches;
  config.round_batches = kBatches;
  ThreadPool pool(1);
  InputLayer layer(config, pool, kernels);
  Rng rng(5, Purpose::kTest);
  std::deque<InputBatch> batches;
  double entries = 0;
  for (std::uint32_t b = 0; b < kBatches; ++b) entries += batches.emplace_back(rng).entries;
  std::vector<HiddenCodes> codes(kBatches);
  const double forward = best_seconds(shape.budget, [&] {
    for (std::uint32_t b = 0; b < kBatches; ++b) codes[b] = layer.forward(batches[b].examples, b);
  });
  const std::vector<std::int32_t> gradient(codes[0].codes.size(), 100);
  const double backward = best_seconds(shape.budget, [&] {
    for (std::uint32_t b = 0; b < kBatches; ++b) {
      layer.backward(b, config.input_rate, batches[b].examples, codes[b], gradient);
    }
  });
  return {{"input layer, forward", "feature of an example", forward / entries, 0, ""},
          {"input layer, backward and update", "feature of an example", backward / entries, 0, ""}};
}

}  // namespace

std::vector<BenchLine> bench_training(const Kernels& kernels, const BenchShape& shape) {
  std::vector<BenchLine> lines;
  const auto add = [&](std::vector<BenchLine> more) {
    for (BenchLine& line : more) lines.push_back(std::move(line));
  };
  StepParts known{.finish = time_finish(kernels, shape)};
  for (const std::uint32_t rows : shape.layers) {
    Layer layer(layer_of(shape.hidden, rows), kernels);
    if (rows == shape.layers.front()) {
      known.scan = time_scan(layer, shape.budget);
      known.visit = time_visit(layer, known, shape.budget);
      lines.push_back({"visit a row", "visit", known.visit, 0, ""});
    }
    lines.push_back(bench_rows_visited(layer, known, shape.budget));
    if (rows == shape.layers.back()) add(bench_rows(layer, shape));
  }
  lines.push_back({"look for a row's visits", "row and batch", known.scan, 0, ""});
  lines.push_back({"finish a gradient in a shard", "example and shard", known.finish, 0, ""});
  add(bench_input(kernels, shape));
  return lines;
}

}  // namespace gleaner
