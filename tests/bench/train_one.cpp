// Trains in one process, without network or store:
//
//   train_one_bench --train FILE --test FILE [--threads N] [--eval-every EPOCHS] [--FIELD VALUE
//   ...] train_one_bench --tiny        a second's work on generated data, so that the bench cannot
//   rot
//
// The configuration is the recipe for the data; every field of ModelConfig is a flag. Prints a line
// an epoch. GLEANER_SIMD chooses the instruction set.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/data/open_or_pack.hpp"
#include "common/limits.hpp"
#include "common/model/recipe.hpp"
#include "tests/bench/evaluation.hpp"
#include "tests/bench/tiny_dataset.hpp"

namespace gleaner {
namespace {

struct Options {
  std::string train;
  std::string test;
  std::string cache_dir;
  unsigned threads = 1;
  std::uint32_t batches_per_unit = 1;
  std::uint32_t eval_every = 1;
  std::uint64_t eval_points = ~std::uint64_t{0};
  double precision_min = 0;  // P@1 after the last epoch below which the program fails
  bool tiny = false;
  bool normalize = true;
  RecipeRequest recipe;
  std::vector<std::function<void(ModelConfig&)>> fields;
};

// A flag's value becomes this field of the configuration.
template <typename T>
std::function<void(const T&)> into(Options& options, T ModelConfig::*field) {
  return [&options, field](const T& value) {
    options.fields.push_back([field, value](ModelConfig& config) { config.*field = value; });
  };
}

template <typename T>
void add_field(CLI::App& app, Options& options, const std::string& flag, T ModelConfig::*field) {
  app.add_option_function<T>(flag, into(options, field));
}

template <typename T>
void add_choice(CLI::App& app, const std::string& flag, const std::map<std::string, T>& words,
                const std::function<void(const T&)>& take) {
  app.add_option_function<std::string>(
         flag, [words, take](const std::string& word) { take(words.at(word)); })
      ->check(CLI::IsMember(words));
}

void add_choices(CLI::App& app, Options& options) {
  add_choice<Sampling>(
      app, "--sampling",
      {{"lsh", Sampling::kLsh}, {"random", Sampling::kRandom}, {"all", Sampling::kAll}},
      into(options, &ModelConfig::sampling));
  add_choice<RecipeKind>(
      app, "--recipe",
      {{"auto", RecipeKind::kAuto}, {"fast", RecipeKind::kFast}, {"best", RecipeKind::kBest}},
      [&options](const RecipeKind& kind) { options.recipe.kind = kind; });
}

void add_fields(CLI::App& app, Options& options) {
  add_choices(app, options);
  add_field(app, options, "--seed", &ModelConfig::seed);
  add_field(app, options, "--hidden", &ModelConfig::hidden);
  add_field(app, options, "--output-shards", &ModelConfig::output_shards);
  add_field(app, options, "--input-shards", &ModelConfig::input_shards);
  add_field(app, options, "--epochs", &ModelConfig::epochs);
  add_field(app, options, "--batch-examples", &ModelConfig::batch_examples);
  add_field(app, options, "--round-batches", &ModelConfig::round_batches);
  app.add_option("--staleness", options.recipe.staleness);
  add_field(app, options, "--hash-bits", &ModelConfig::hash_bits);
  add_field(app, options, "--tables", &ModelConfig::tables);
  add_field(app, options, "--active-cap", &ModelConfig::active_cap);
  add_field(app, options, "--random-negatives", &ModelConfig::random_negatives);
  add_field(app, options, "--rehash-batches", &ModelConfig::rehash_batches);
  add_field(app, options, "--output-rate", &ModelConfig::output_rate);
  add_field(app, options, "--input-rate", &ModelConfig::input_rate);
  add_field(app, options, "--rate-decay", &ModelConfig::rate_decay);
  add_field(app, options, "--staleness-rise", &ModelConfig::staleness_rise);
  add_field(app, options, "--warmup-batches", &ModelConfig::warmup_batches);
  add_field(app, options, "--second-moment-decay", &ModelConfig::second_moment_decay);
  add_field(app, options, "--epsilon", &ModelConfig::epsilon);
  add_field(app, options, "--dropout", &ModelConfig::dropout);
  add_field(app, options, "--feature-dropout", &ModelConfig::feature_dropout);
  add_field(app, options, "--input-scale", &ModelConfig::input_scale);
  add_field(app, options, "--output-scale", &ModelConfig::output_scale);
  add_field(app, options, "--divergence-factor", &ModelConfig::divergence_factor);
  add_field(app, options, "--gradient-step-log2", &ModelConfig::gradient_step_log2);
  add_field(app, options, "--activation-bits", &ModelConfig::activation_bits);
}

int fail(const Error& error) {
  fmt::print(stderr, "train_one_bench: {}\n", error.message);
  return 1;
}

DatasetFacts facts_of(const PackedDataset& train) {
  DatasetFacts facts{train.points(), train.features(), train.labels()};
  double labels = 0;
  double features = 0;
  for (std::uint64_t p = 0; p < train.points(); ++p) {
    const ExampleView example = train.example(p);
    labels += static_cast<double>(example.labels.size());
    features += static_cast<double>(example.features.size());
  }
  facts.labels_per_point = labels / static_cast<double>(train.points());
  facts.features_per_point = features / static_cast<double>(train.points());
  return facts;
}

void print_buckets(const std::array<Precision, kFrequencyBuckets.size()>& buckets) {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::string until =
        b + 1 < buckets.size() ? fmt::format(" to {}", kFrequencyBuckets[b + 1].count_min - 1) : "";
    fmt::print(
        "\n  of it {:5} (labels of {}{} training examples): P@1 {:.4f} P@5 {:.4f} PSP@1 {:.4f} "
        "PSP@5 {:.4f}",
        kFrequencyBuckets[b].name, kFrequencyBuckets[b].count_min,
        until.empty() ? " or more" : until, buckets[b].p[0], buckets[b].p[2], buckets[b].psp[0],
        buckets[b].psp[2]);
  }
}

int run(const Options& options, const PackedDataset& train, const PackedDataset& test) {
  // One process trains a hidden layer; wide rows are a master's to train.
  RecipeRequest request = options.recipe;
  request.hidden = 1;
  ModelConfig config = recipe(facts_of(train), request).model;
  config.data_fingerprint = train.fingerprint();
  for (const auto& set : options.fields) set(config);
  if (const auto valid = validate(config); !valid) return fail(valid.error());
  fmt::print(
      "{} examples, {} features, {} labels, hidden {}, batch {}, K {} L {} cap {}, rates {} {}"
      " x {}, lag {}\n",
      config.points, config.features, config.labels, config.hidden, config.batch_examples,
      config.hash_bits, config.tables, config.active_cap, config.input_rate, config.output_rate,
      config.rate_decay, config.staleness);
  ThreadPool pool(options.threads);
  OneProcessRun run = run_on(config, train, pool);
  run.set_batches_per_unit(options.batches_per_unit);
  if (const auto begun = run.begin(); !begun) return fail(begun.error());
  double precision = 0;
  for (std::uint32_t epoch = 0; epoch < config.epochs; ++epoch) {
    const auto report = run.train((epoch + 1) * run.plan().batches_per_epoch());
    if (!report) return fail(report.error());
    const auto examples = static_cast<double>(report->examples);
    fmt::print(
        "epoch {:2} loss {:.4f} active {:.0f} | {:.0f} examples/s, {:.1f} us of CPU an "
        "example ({:.1f} input)",
        epoch + 1, report->loss, report->active, examples / report->seconds,
        report->cpu_seconds / examples * 1e6, report->input_cpu_seconds / examples * 1e6);
    if ((epoch + 1) % options.eval_every == 0 || epoch + 1 == config.epochs) {
      const auto metrics = evaluate(run, train.points(), test, options.eval_points);
      if (!metrics) return fail(metrics.error());
      fmt::print(" | {}  of {}", to_text(metrics->whole), metrics->evaluated);
      precision = metrics->whole.at_1();
      if (epoch + 1 == config.epochs) print_buckets(metrics->buckets);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  fmt::print("memory {:.0f} MB\n", static_cast<double>(run.memory_bytes()) * 1e-6);
  if (precision >= options.precision_min) return 0;
  fmt::print(stderr, "train_one_bench: P@1 {:.4f} is below {:.4f}\n", precision,
             options.precision_min);
  return 1;
}

// Fails when training does not learn: a bench of something broken measures nothing.
int run_tiny(Options options) {
  const auto tiny = TinyDataset::make();
  if (!tiny) return fail(tiny.error());
  options.fields.insert(options.fields.begin(), [](ModelConfig& config) {
    config.epochs = 10;
    config.hidden = 32;
    config.batch_examples = 16;
    config.active_cap = 50;
    config.hash_bits = 4;
  });
  options.eval_every = 10;
  options.precision_min = 0.5;
  return run(options, (*tiny)->train(), (*tiny)->test());
}

int main_program(int argc, char** argv) {
  Options options;
  CLI::App app("Trains in one process, without network or store.");
  app.add_option("--train", options.train);
  app.add_option("--test", options.test);
  app.add_option("--cache", options.cache_dir,
                 "folder for packed data instead of beside the files");
  app.add_option("--threads", options.threads);
  app.add_option("--batches-per-unit", options.batches_per_unit,
                 "batches that the output shards train together, as far as the lag lets them")
      ->capture_default_str()
      ->check(CLI::Range(1u, kBatchesPerUnitMax));
  app.add_option("--eval-every", options.eval_every)->check(CLI::PositiveNumber);
  app.add_option("--eval-points", options.eval_points);
  app.add_flag("--tiny", options.tiny);
  app.add_flag("--normalize,!--no-normalize", options.normalize);
  add_fields(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.tiny) return run_tiny(std::move(options));
  PackOptions pack;
  pack.cache_dir = options.cache_dir;
  pack.normalize = options.normalize;
  const auto train = open_or_pack(options.train, pack);
  if (!train) return fail(train.error());
  pack.text.limits = Dimensions{(*train)->features(), (*train)->labels()};
  const auto test = open_or_pack(options.test, pack);
  if (!test) return fail(test.error());
  return run(options, **train, **test);
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  return gleaner::main_program(argc, argv);
}
