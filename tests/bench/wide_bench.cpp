// Trains some shards of a run without a hidden layer through a round, as a volunteer's lanes do,
// without network or store:
//
//   wide_bench --train FILE [--shards S] [--held N] [--threads T] [--batches B]
//   wide_bench --tiny        a second's work on generated data, so that the bench cannot rot
//
// The configuration is the recipe for the data, in rounds of B batches. Prints the seconds and the
// microseconds an example and shard.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/data/open_or_pack.hpp"
#include "common/model/recipe.hpp"
#include "common/os/process.hpp"
#include "common/time.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/wide_start.hpp"
#include "tests/bench/tiny_dataset.hpp"
#include "volunteer/executor.hpp"

namespace gleaner {
namespace {

using volunteer::Executor;

struct Options {
  std::string train;
  std::uint32_t shards = 64;
  std::uint32_t held = 64;
  unsigned threads = 1;
  std::uint32_t batches = 400;
  bool tiny = false;
};

ModelConfig model_of(const PackedDataset& train, const Options& options) {
  const PackedSummary summary = train.summary();
  const auto points = static_cast<double>(train.points());
  DatasetFacts facts{train.points(), train.features(), train.labels()};
  facts.labels_per_point = static_cast<double>(summary.label_entries) / points;
  facts.features_per_point = static_cast<double>(summary.feature_entries) / points;
  RecipeRequest request;
  request.hidden = 0;
  ModelConfig model = recipe(facts, request).model;
  model.data_fingerprint = train.fingerprint();
  model.output_shards = std::min(options.shards, model.labels);
  model.round_batches = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options.batches, batches_per_epoch(model)));
  return model;
}

// Gives the executor shard `id` and a unit of it; false when it takes neither.
bool give(Executor& executor, const ModelConfig& model, WideStart& start,
          const std::vector<std::uint32_t>& counts, ShardId id) {
  const ShardMap map(model);
  LeaseGrant grant;
  grant.lease = {id, LeaseEpoch{1}};
  grant.base_chunks = grant.chunks = 1;
  for (std::uint32_t n = map.neurons(id).begin; n < map.neurons(id).end; ++n) {
    grant.label_counts.push_back(counts[map.label_of_neuron(n)]);
  }
  auto rows = start.rows()(id, 0, model.wide_rows);
  TrainUnit unit;
  unit.leases = {grant.lease};
  unit.batches.push_back({0, {}, {{0}, {}}, RunPlan(model).rates(0).output});
  return rows.ok() && executor.execute(Message(grant)).ok() &&
         executor.execute(Message(ShardChunk{grant.lease, 0, std::move(*rows)})).ok() &&
         executor.execute(Message(unit)).ok();
}

int run(const Options& options, const PackedDataset& train) {
  ModelConfig model = model_of(train, options);
  auto start = WideStart::open(model, train).value();
  model.wide_rows = start->sizes().value().rows;
  ThreadPool pool(options.threads);
  volunteer::ExampleStoreOptions examples;
  examples.own.train = &train;
  Executor executor(pool, std::uint64_t{1} << 40, examples);
  GLEANER_CHECK(executor.execute(volunteer::Reset{model}).ok());
  const std::uint32_t held = std::min(options.held, model.output_shards);
  const std::vector<std::uint32_t> counts = count_labels(train);
  for (std::uint32_t shard = 0; shard < held; ++shard) {
    GLEANER_CHECK(give(executor, model, *start, counts, ShardId{shard}));
  }
  const double processor = os::processor_seconds();
  const Instant begin = monotonic_now();
  const auto take = [](const Executor::Ran& ran) { GLEANER_CHECK(ran.replies.ok()); };
  std::vector<std::thread> lanes;
  for (unsigned lane = 0; lane < options.threads; ++lane) {
    lanes.emplace_back([&] {
      while (executor.run_next(take)) {
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  const double seconds = static_cast<double>((monotonic_now() - begin).count()) / 1e6;
  const double used = os::processor_seconds() - processor;
  const RunPlan plan(model);
  std::uint64_t count = 0;
  for (BatchIndex batch = 0; batch < plan.round_end(0); ++batch) count += plan.examples_in(batch);
  const double pairs = static_cast<double>(count) * held;
  fmt::print(
      "{} of {} shards, {} examples, {} threads: {:.2f} s, {:.2f} processor seconds, {:.3f} us an "
      "example and shard; a layer: {:.0f} examples/s per processor, {:.0f} in all; {} MiB held\n",
      held, model.output_shards, count, options.threads, seconds, used, used / pairs * 1e6,
      pairs / model.output_shards / used, pairs / model.output_shards / seconds,
      executor.held_bytes() >> 20);
  return 0;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  gleaner::Options options;
  CLI::App app("Trains shards without a hidden layer through a round.");
  app.add_option("--train", options.train);
  app.add_option("--shards", options.shards);
  app.add_option("--held", options.held);
  app.add_option("--threads", options.threads);
  app.add_option("--batches", options.batches);
  app.add_flag("--tiny", options.tiny);
  CLI11_PARSE(app, argc, argv);
  if (options.tiny) {
    const auto tiny = gleaner::TinyDataset::make();
    if (!tiny) return 1;
    options.shards = 4;
    options.threads = 2;
    return gleaner::run(options, (*tiny)->train());
  }
  const auto train = gleaner::open_or_pack(options.train, {});
  if (!train) {
    fmt::print(stderr, "wide_bench: {}\n", train.error().message);
    return 1;
  }
  return gleaner::run(options, **train);
}
