// Speed of the kernels and of training a batch: train_bench [examples a second shape options].
//
//   train_bench --tiny                 a second's work, so that the bench cannot rot
//   train_bench                        the shape of citeulike-t: 52,946 neurons, H = 128, L = 50,
//                                      K = 9, cap 1000, batches of 256, one thread
//   train_bench --labels N --batch B --threads T --shards S --cap C --batches M --bits K
//   train_bench --curve                examples a processor second over 10,000 to 3,000,000 labels
//                                      at the same cap, and, as far as it is bearable, dense
//
// GLEANER_SIMD chooses the instruction set. Quantized activations are random ReLU-like vectors
// around cluster centres, so that buckets are as uneven as in a trained layer.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "common/counter_random.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/thread_pool.hpp"
#include "common/time.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/kernels.hpp"
#include "common/train/shard_trainer.hpp"
#include "common/work/quantized_activations.hpp"

namespace gleaner {
namespace {

struct Options {
  std::uint32_t labels = 52'946;
  std::uint32_t hidden = 128;
  std::uint32_t batch = 256;
  std::uint32_t threads = 1;
  std::uint32_t shards = 16;
  std::uint32_t cap = 1000;
  std::uint32_t batches = 128;
  std::uint32_t hash_bits = 9;
  std::uint32_t rehash = 50;
  Sampling sampling = Sampling::kLsh;
  bool tiny = false;
};

double seconds_since(Instant start) {
  return static_cast<double>((monotonic_now() - start).count()) * 1e-6;
}

// Processor time of all threads: what a busy machine does not distort as much.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

ModelConfig config_of(const Options& options) {
  ModelConfig config;
  config.points = std::uint64_t{options.batch} * options.batches;
  config.features = 1000;
  config.labels = options.labels;
  config.hidden = options.hidden;
  config.output_shards = options.shards;
  config.epochs = 1;
  config.batch_examples = options.batch;
  config.round_batches = 64;
  config.hash_bits = options.hash_bits;
  config.active_cap = options.cap;
  config.rehash_batches = options.rehash;
  config.sampling = options.sampling;
  return config;
}

QuantizedActivations random_hidden(Rng& rng, std::uint32_t examples, std::uint32_t hidden) {
  QuantizedActivations codes;
  codes.examples = examples;
  codes.hidden = hidden;
  codes.scales.assign(examples, 0.01F);
  codes.codes.resize(std::size_t{examples} * hidden);
  for (std::uint32_t e = 0; e < examples; ++e) {
    const std::uint64_t cluster = rng.next_below(200);
    for (std::uint32_t i = 0; i < hidden; ++i) {
      const auto centre =
          static_cast<std::int64_t>(below(counter_random(1, Purpose::kTest, cluster, i), 400));
      const auto noise = static_cast<std::int64_t>(rng.next_below(200));
      const std::int64_t value = std::clamp<std::int64_t>(centre + noise - 300, 0, 255) / 2;
      codes.codes[std::size_t{e} * hidden + i] = static_cast<std::uint8_t>(value);
    }
  }
  return codes;
}

Positives random_positives(Rng& rng, const Options& options) {
  Positives positives;
  positives.offsets.push_back(0);
  for (std::uint32_t e = 0; e < options.batch; ++e) {
    std::vector<std::uint32_t> neurons;
    for (int i = 0; i < 11; ++i) {
      neurons.push_back(static_cast<std::uint32_t>(rng.next_below(options.labels)));
    }
    std::sort(neurons.begin(), neurons.end());
    neurons.erase(std::unique(neurons.begin(), neurons.end()), neurons.end());
    positives.neurons.insert(positives.neurons.end(), neurons.begin(), neurons.end());
    positives.offsets.push_back(static_cast<std::uint32_t>(positives.neurons.size()));
  }
  return positives;
}

void bench_kernels(const Kernels& kernels, std::size_t n) {
  Rng rng(1, Purpose::kTest);
  AlignedVector<float> a(n * 64);
  for (float& value : a) value = signed_unit(rng.next());
  AlignedVector<float> b = a;
  constexpr int kRepeats = 200'000;
  float sink = 0;
  Instant start = monotonic_now();
  for (int i = 0; i < kRepeats; ++i) sink += kernels.dot(&a[n * (i % 64)], b.data(), n);
  const double dot_ns = seconds_since(start) / kRepeats * 1e9;
  start = monotonic_now();
  for (int i = 0; i < kRepeats; ++i) kernels.axpy(1e-9F, &a[n * (i % 64)], b.data(), n);
  const double axpy_ns = seconds_since(start) / kRepeats * 1e9;
  std::vector<float> scores(64 * 64);
  start = monotonic_now();
  const std::vector<float> biases(64, sink * 0.0F);
  constexpr int kBlocks = 200;
  for (int i = 0; i < kBlocks; ++i) {
    kernels.score_rows({n, a.data(), biases.data(), 64, b.data(), 64, scores.data(), 64});
  }
  const double score_ns = seconds_since(start) / (kBlocks * 64.0 * 64.0) * 1e9;
  fmt::print("{} kernels, n = {}: dot {:.1f} ns, axpy {:.1f} ns, blocked score {:.2f} ns\n",
             simd_level_name(kernels.level), n, dot_ns, axpy_ns, score_ns);
}

// Loads every shard at checkpoint 0; returns the leases.
std::vector<LeaseRef> load_all(ShardTrainer& trainer, const ModelConfig& config) {
  const ShardMap map(config);
  std::vector<LeaseRef> leases;
  for (std::uint32_t shard = 0; shard < config.output_shards; ++shard) {
    LeaseGrant grant;
    grant.lease = {ShardId{shard}, LeaseEpoch{shard + 1}};
    grant.label_counts.assign(map.row_count(ShardId{shard}), 4);
    if (!trainer.begin_load(grant) || !trainer.finish_load(grant.lease)) std::abort();
    leases.push_back(grant.lease);
  }
  return leases;
}

void bench_training(const Options& options) {
  const ModelConfig config = config_of(options);
  ThreadPool pool(options.threads);
  ShardTrainer trainer(config, pool);
  Instant start = monotonic_now();
  const std::vector<LeaseRef> leases = load_all(trainer, config);
  fmt::print("load {} neurons in {} shards: {:.3f} s, {:.1f} MB\n", options.labels, options.shards,
             seconds_since(start), static_cast<double>(trainer.memory_bytes()) * 1e-6);

  Rng rng(2, Purpose::kTest);
  double seconds = 0;
  double processor_seconds = 0;
  std::uint64_t active = 0;
  std::int64_t loss = 0;
  std::uint64_t digest = 0;
  std::size_t gradient_bytes = 0;
  for (std::uint32_t batch = 0; batch < options.batches; ++batch) {
    TrainUnit unit;
    unit.leases = leases;
    UnitBatch work;
    work.batch = batch;
    work.hidden =
        std::make_shared<const Bytes>(pack(random_hidden(rng, options.batch, options.hidden)));
    work.positives = random_positives(rng, options);
    work.output_rate = config.output_rate;
    unit.batches.push_back(std::move(work));
    start = monotonic_now();
    const double processor_start = cpu_seconds();
    const auto outcome = trainer.train(unit);
    seconds += seconds_since(start);
    processor_seconds += cpu_seconds() - processor_start;
    if (!outcome) {
      fmt::print("{}\n", outcome.error().message);
      std::abort();
    }
    for (const ShardOutcome& shard : outcome->result.batches[0].shards) {
      active += shard.active;
      loss += shard.loss;
      digest = mix64(digest ^ shard.gradient_digest);
    }
    gradient_bytes += outcome->result.batches[0].gradient.size();
  }
  const double examples = static_cast<double>(options.batches) * options.batch;
  fmt::print(
      "train: {:.0f} examples/s, {:.0f} a processor second, {:.0f} active and {:.3f} nats an "
      "example, {:.0f} "
      "gradient bytes an example, {:.1f} MB, digest {:016x}\n",
      examples / seconds, examples / processor_seconds, static_cast<double>(active) / examples,
      static_cast<double>(loss) / 1048576.0 / examples,
      static_cast<double>(gradient_bytes) / examples,
      static_cast<double>(trainer.memory_bytes()) * 1e-6, digest);

  EvalUnit eval;
  eval.leases = leases;
  eval.hidden =
      std::make_shared<const Bytes>(pack(random_hidden(rng, options.batch, options.hidden)));
  start = monotonic_now();
  const auto scores = trainer.evaluate(eval);
  if (!scores) std::abort();
  fmt::print("evaluate: {:.0f} examples/s\n", options.batch / seconds_since(start));
}

// As many neurons a bucket at every width; some batches, the first of which meet untouched memory.
void bench_curve() {
  for (const std::uint32_t labels :
       {10'000u, 30'000u, 100'000u, 300'000u, 1'000'000u, 3'000'000u}) {
    Options options{.labels = labels, .batches = 40};
    options.hash_bits = static_cast<std::uint32_t>(std::bit_width(labels / 200)) - 1;
    bench_training(options);
    if (labels > 300'000) continue;
    options.sampling = Sampling::kAll;
    options.batches = 2;
    bench_training(options);
  }
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--tiny") {
      options = {.labels = 2000, .batch = 64, .shards = 4, .cap = 200, .batches = 66, .tiny = true};
      continue;
    }
    if (name == "--curve") {
      bench_curve();
      return 0;
    }
    if (i + 1 == argc) break;
    const auto value = static_cast<std::uint32_t>(std::strtoul(argv[++i], nullptr, 10));
    if (name == "--labels") options.labels = value;
    if (name == "--hidden") options.hidden = value;
    if (name == "--batch") options.batch = value;
    if (name == "--threads") options.threads = value;
    if (name == "--shards") options.shards = value;
    if (name == "--cap") options.cap = value;
    if (name == "--batches") options.batches = value;
    if (name == "--bits") options.hash_bits = value;
    if (name == "--rehash") options.rehash = value;
  }
  const Result<SimdLevel> level = simd_level_from_environment();
  if (!level) {
    fmt::print(stderr, "{}\n", level.error().message);
    return 1;
  }
  bench_kernels(kernels_for(*level), options.hidden);
  bench_training(options);
  return 0;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  return gleaner::run(argc, argv);
}
