#include "tools/bench_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "common/counter_random.hpp"
#include "schema/gradient.hpp"
#include "tools/bench_layer.hpp"
#include "tools/bench_timing.hpp"
#include "volunteer/train/shard_trainer.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kStepExamples = 128;
constexpr std::uint32_t kLabelsPerExample = 5;
constexpr float kRate = 1e-3F;
constexpr std::size_t kTimedPasses = 5;

// A round of as many batches as lie between two rehashes, and more of the same examples, which are
// the ones that count: their rows have been met before.
ModelConfig step_model(std::uint32_t hidden, std::uint32_t rows, std::uint32_t batches) {
  ModelConfig config = layer_of(hidden, rows, kStepExamples);
  config.rehash_batches = batches;
  config.round_batches = 8 * batches;  // none ends in between
  config.points = std::uint64_t{kStepExamples} * 8 * batches;
  return config;
}

struct StepBatch {
  HiddenCodes codes;
  SharedBytes packed;
  Positives positives;
};

StepBatch step_batch(const ModelConfig& config, std::uint32_t number) {
  StepBatch batch;
  batch.codes =
      clustered_codes(config.hidden, number * kStepExamples, (number + 1) * kStepExamples);
  batch.packed = std::make_shared<const Bytes>(pack(batch.codes));
  Rng rng(number, Purpose::kTest);
  batch.positives.offsets.push_back(0);
  std::vector<std::uint32_t>& all = batch.positives.neurons;
  for (std::uint32_t e = 0; e < kStepExamples; ++e) {
    std::vector<std::uint32_t> own;
    for (std::uint32_t i = 0; i < kLabelsPerExample; ++i) {
      own.push_back(static_cast<std::uint32_t>(rng.next_below(config.labels)));
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    all.insert(all.end(), own.begin(), own.end());
    batch.positives.offsets.push_back(static_cast<std::uint32_t>(all.size()));
  }
  return batch;
}

// What the parts are so many of, over all batches.
struct StepCounts {
  double rows = 0;
  double rehashed = 0;
};

StepCounts count(const ModelConfig& config, const Kernels& kernels,
                 const std::vector<StepBatch>& batches) {
  BenchLayer layer(config, kernels);
  StepCounts counts;
  std::vector<bool> touched(config.labels);
  QueryBatch query(config, layer.family.get());
  ActiveSets active(config);
  for (std::size_t b = 0; b < batches.size(); ++b) {
    query.prepare(b, batches[b].codes, layer.pool);
    for (const OutputShard& shard : layer.shards) {
      active.build(query, batches[b].positives, shard.id(), shard.neurons(), shard.tables());
      counts.rows += static_cast<double>(active.rows().size());
      for (const std::uint32_t row : active.rows()) touched[shard.neurons().begin + row] = true;
    }
  }
  counts.rehashed = static_cast<double>(std::count(touched.begin(), touched.end(), true));
  return counts;
}

// What surrounds the shards' steps: unpacking and hashing the batch, packing its gradient.
double time_around(const ModelConfig& config, const Kernels& kernels, const StepBatch& batch,
                   double budget) {
  ThreadPool pool(1);
  const auto family = make_hash_family(config, kernels);
  QueryBatch query(config, family.get());
  const std::vector<std::int32_t> gradient(batch.codes.codes.size(), 2'000);
  return best_seconds(budget, [&] {
    const Result<HiddenCodes> codes = unpack_hidden(*batch.packed);
    query.prepare(0, *codes, pool);
    (void)pack_gradient(*codes, gradient);
  });
}

class StepRun {
 public:
  StepRun(const ModelConfig& config, const Kernels& kernels, unsigned threads)
      : pool_(threads), trainer_(config, pool_, kernels), map_(config) {
    for (std::uint32_t s = 0; s < config.output_shards; ++s) {
      LeaseGrant grant;
      grant.lease = {ShardId{s}, LeaseEpoch{s + std::uint64_t{1}}};
      grant.label_counts.assign(map_.row_count(grant.lease.shard), 1);
      is_good_ =
          is_good_ && trainer_.begin_load(grant).ok() && trainer_.finish_load(grant.lease).ok();
      leases_.push_back(grant.lease);
    }
  }

  // Trains on all of them, and returns the seconds of processor that took.
  double pass(const std::vector<StepBatch>& batches) {
    visits_ = 0;
    double seconds = 0;
    for (const StepBatch& batch : batches) {
      TrainUnit unit;
      unit.unit = UnitId{next_};
      unit.leases = leases_;
      unit.batches.push_back({next_++, batch.packed, batch.positives, kRate});
      const double start = processor_seconds();
      const auto outcome = trainer_.train(unit);
      seconds += processor_seconds() - start;
      is_good_ = is_good_ && outcome.ok();
      if (!outcome) break;
      for (const ShardOutcome& shard : outcome->result.batches[0].shards) {
        visits_ += static_cast<double>(shard.active);
      }
    }
    return seconds;
  }

  [[nodiscard]] double visits() const { return visits_; }

  [[nodiscard]] bool is_good() const { return is_good_; }

 private:
  ThreadPool pool_;
  ShardTrainer trainer_;
  ShardMap map_;
  std::vector<LeaseRef> leases_;
  BatchIndex next_ = 0;
  double visits_ = 0;
  bool is_good_ = true;
};

// Seconds of processor that all batches take by so many threads, and their visits.
struct StepTime {
  double seconds = 0;
  double visits = 0;
  bool is_good = false;
};

// The middle of several passes: a run meets what the machine usually gives, not its best.
StepTime time_steps(const ModelConfig& config, const Kernels& kernels,
                    const std::vector<StepBatch>& batches, unsigned threads) {
  StepRun run(config, kernels, threads);
  run.pass(batches);
  std::array<double, kTimedPasses> seconds{};
  for (double& of_pass : seconds) of_pass = run.pass(batches);
  std::sort(seconds.begin(), seconds.end());
  return {seconds[kTimedPasses / 2], run.visits(), run.is_good()};
}

}  // namespace

std::vector<BenchLine> bench_step(const Kernels& kernels, const BenchShape& shape,
                                  std::uint32_t rows, const StepParts& parts) {
  const ModelConfig config = step_model(shape.hidden, rows, shape.step_batches);
  std::vector<StepBatch> batches;
  for (std::uint32_t b = 0; b < shape.step_batches; ++b) batches.push_back(step_batch(config, b));
  const StepCounts counts = count(config, kernels, batches);
  const unsigned processors = std::clamp(std::thread::hardware_concurrency(), 1u, kBenchShards);
  const StepTime all = time_steps(config, kernels, batches, processors);
  const StepTime one = time_steps(config, kernels, batches, 1);
  if (!all.is_good || !one.is_good) return {};
  const double steps = shape.step_batches;
  const double sum =
      one.visits * parts.visit + counts.rows * parts.row + steps * config.labels * parts.scan +
      steps * kStepExamples * kBenchShards * parts.finish + counts.rehashed * parts.rehash +
      steps * time_around(config, kernels, batches[0], shape.budget);
  const double examples = steps * kStepExamples;
  const auto line = [&](const char* what, double seconds) {
    return BenchLine{fmt::format("{}, layer of {} rows", what, rows), "example", seconds / examples,
                     0, ""};
  };
  return {line("a whole step, all processors busy", all.seconds),
          line("a whole step, one processor busy", one.seconds),
          line("the sum of a step's parts", sum)};
}

}  // namespace gleaner
