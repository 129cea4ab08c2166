// Measures the sampling of active neurons instead of trusting it: after each epoch of a training in
// one process, how many of the highest logits tables of several shapes would bring, how much of the
// negatives' gradient that is, and what uniform choice would.
//
//   sampling_bench --train FILE [--epochs N] [--hidden H] [--points N]
//   sampling_bench --tiny          a second's work on generated data, so that the bench cannot rot
//
// Training itself follows the recipe. Figures: tests/bench/RESULTS.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/data/open_or_pack.hpp"
#include "common/model/recipe.hpp"
#include "tests/bench/evaluation.hpp"
#include "tests/bench/sampling_quality.hpp"
#include "tests/bench/tiny_dataset.hpp"

namespace gleaner {
namespace {

struct Options {
  std::string train;
  std::optional<std::uint32_t> epochs;
  std::optional<std::uint32_t> hidden;
  std::uint64_t points = 200;
  unsigned threads = 1;
  bool tiny = false;
};

int fail(const Error& error) {
  fmt::print(stderr, "sampling_bench: {}\n", error.message);
  return 1;
}

// The training's own sampling first, then one thing changed at a time, uniform choice last.
std::vector<ModelConfig> variants_of(const ModelConfig& config) {
  std::vector<ModelConfig> variants = {config};
  const auto add = [&](auto change) {
    variants.push_back(config);
    change(variants.back());
  };
  for (const int step : {-2, 2}) {
    const int bits = static_cast<int>(config.hash_bits) + step;
    if (bits >= 1) add([&](ModelConfig& c) { c.hash_bits = static_cast<std::uint32_t>(bits); });
  }
  add([](ModelConfig& c) { c.tables /= 2; });
  add([](ModelConfig& c) { c.tables *= 2; });
  add([](ModelConfig& c) { c.active_cap /= 3; });
  add([](ModelConfig& c) { c.active_cap *= 3; });
  add([](ModelConfig& c) {
    c.sampling = Sampling::kRandom;
    c.active_cap += c.random_negatives;
  });
  return variants;
}

void print(const ModelConfig& c, std::uint32_t epoch, const SamplingQuality& quality) {
  const char* name = c.sampling == Sampling::kRandom ? "uniform" : "SimHash";
  fmt::print("| {:5} | {:7} | {:2} | {:3} | {:5} | {:6.0f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n",
             epoch, name, c.hash_bits, c.tables, c.active_cap, quality.active, quality.recall_10,
             quality.recall_100, quality.gradient, quality.gradient_best);
  std::fflush(stdout);
}

// Fails when tables bring no more of the highest logits than chance: then they are broken.
int run(const Options& options, ModelConfig config, const PackedDataset& train) {
  if (options.epochs) config.epochs = *options.epochs;
  if (options.hidden) config.hidden = *options.hidden;
  config.sampling = Sampling::kLsh;
  if (const auto valid = validate(config); !valid) return fail(valid.error());
  ThreadPool pool(options.threads);
  OneProcessRun run = run_on(config, train, pool);
  CommittedRows rows(config, count_labels(train));
  run.on_commit([&rows](const ShardCommit& commit) { rows.apply(commit); });
  if (const auto begun = run.begin(); !begun) return fail(begun.error());
  std::vector<ExampleView> examples;
  const std::uint64_t stride = std::max<std::uint64_t>(1, train.points() / options.points);
  for (std::uint64_t p = 0; p < train.points() && examples.size() < options.points; p += stride) {
    examples.push_back(train.example(p));
  }
  fmt::print(
      "| epoch | hash | K | L | cap | active | recall@10 | recall@100 | gradient | at "
      "best |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  SamplingQuality first;
  SamplingQuality last;
  for (std::uint32_t epoch = 0; epoch < config.epochs; ++epoch) {
    const auto report = run.train((epoch + 1) * run.plan().batches_per_epoch());
    if (!report) return fail(report.error());
    const std::vector<ModelConfig> variants = variants_of(config);
    for (const ModelConfig& variant : variants) {
      last = sampling_quality(variant, rows, run.quantized_activations(examples),
                              run.positives_of(examples), pool);
      if (&variant == &variants.front()) first = last;
      print(variant, epoch + 1, last);
    }
  }
  if (first.recall_10 > last.recall_10) return 0;
  fmt::print(stderr, "sampling_bench: recall {:.3f} by tables, {:.3f} by chance\n", first.recall_10,
             last.recall_10);
  return 1;
}

ModelConfig recipe_for(const PackedDataset& train) {
  DatasetFacts facts;
  facts.points = train.points();
  facts.features = train.features();
  facts.labels = train.labels();
  return recipe(facts, {.hidden = 1}).model;
}

int run_tiny(const Options& options) {
  const auto tiny = TinyDataset::make();
  if (!tiny) return fail(tiny.error());
  ModelConfig config = recipe_for((*tiny)->train());
  config.epochs = 4;
  config.hidden = 32;
  config.batch_examples = 16;
  config.active_cap = 50;
  config.random_negatives = 0;
  config.hash_bits = 4;
  return run(options, config, (*tiny)->train());
}

int main_program(int argc, char** argv) {
  Options options;
  CLI::App app("Measures how good the sampling of active neurons is while a network is trained.");
  app.add_option("--train", options.train);
  app.add_option("--epochs", options.epochs);
  app.add_option("--hidden", options.hidden);
  app.add_option("--points", options.points, "examples of the training file that are judged")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads);
  app.add_flag("--tiny", options.tiny);
  CLI11_PARSE(app, argc, argv);
  if (options.tiny) return run_tiny(options);
  const auto train = open_or_pack(options.train);
  if (!train) return fail(train.error());
  return run(options, recipe_for(**train), **train);
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  return gleaner::main_program(argc, argv);
}
