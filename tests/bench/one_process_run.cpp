#include "tests/bench/one_process_run.hpp"

#include <algorithm>
#include <ctime>

#include "common/check.hpp"
#include "common/time.hpp"
#include "schema/gradient.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kEvaluatedAtOnce = 256;
constexpr std::uint32_t kTopK = 5;

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double seconds_since(Instant start) {
  return static_cast<double>((monotonic_now() - start).count()) * 1e-6;
}

}  // namespace

OneProcessRun::OneProcessRun(const ModelConfig& config, const PackedDataset& train,
                             ThreadPool& pool)
    : config_(config),
      train_(train),
      label_counts_(count_labels(train)),
      plan_(config),
      map_(config),
      input_(config, pool),
      output_(config, pool),
      propensities_(label_counts_, train.points()) {}

Result<void> OneProcessRun::begin() {
  for (std::uint32_t s = 0; s < map_.output_shards(); ++s) {
    LeaseGrant grant;
    grant.lease = {ShardId{s}, LeaseEpoch{s + std::uint64_t{1}}};
    const NeuronRange range = map_.neurons(grant.lease.shard);
    for (std::uint32_t neuron = range.begin; neuron < range.end; ++neuron) {
      grant.label_counts.push_back(label_counts_[map_.label_of_neuron(neuron)]);
    }
    if (auto begun = output_.begin_load(grant); !begun) return begun.error();
    if (auto ready = output_.finish_load(grant.lease); !ready) return ready.error();
    leases_.push_back(grant.lease);
  }
  return {};
}

Positives OneProcessRun::positives_of(std::span<const ExampleView> examples) const {
  Positives positives;
  positives.offsets.push_back(0);
  for (const ExampleView& example : examples) {
    const auto first = static_cast<std::ptrdiff_t>(positives.neurons.size());
    for (const std::uint32_t label : example.labels) {
      positives.neurons.push_back(map_.neuron_of_label(label));
    }
    std::sort(positives.neurons.begin() + first, positives.neurons.end());
    positives.offsets.push_back(static_cast<std::uint32_t>(positives.neurons.size()));
  }
  return positives;
}

void OneProcessRun::apply_before(BatchIndex batch, EpochReport& report) {
  const double start = cpu_seconds();
  while (!in_flight_.empty() && in_flight_.front().batch < batch) {
    const InFlight& done = in_flight_.front();
    input_.backward(done.batch, plan_.rates(done.batch).input, done.examples, done.codes,
                    done.gradient);
    in_flight_.pop_front();
  }
  report.input_cpu_seconds += cpu_seconds() - start;
}

Result<void> OneProcessRun::train_batch(BatchIndex batch, EpochReport& report) {
  apply_before(plan_.applied_before(batch), report);
  InFlight flight;
  flight.batch = batch;
  for (const std::uint64_t point : plan_.points_of(batch)) {
    flight.examples.push_back(train_.example(point));
  }
  const double start = cpu_seconds();
  flight.codes = input_.forward(flight.examples, batch);
  report.input_cpu_seconds += cpu_seconds() - start;

  TrainUnit unit;
  unit.unit = UnitId{batch};
  unit.leases = leases_;
  unit.batches.push_back({batch, std::make_shared<const Bytes>(pack(flight.codes)),
                          positives_of(flight.examples), plan_.rates(batch).output});
  Result<ShardTrainer::UnitOutcome> outcome = output_.train(unit);
  if (!outcome) return outcome.error();
  if (observer_) {
    for (const ShardCommit& commit : outcome->commits) observer_(commit);
  }
  const BatchResult& result = outcome->result.batches.at(0);
  flight.gradient.assign(flight.codes.codes.size(), 0);
  if (!result.gradient.empty()) {
    if (auto added = add_gradient(flight.codes, result.gradient, flight.gradient); !added) {
      return added.error();
    }
  }
  for (const ShardOutcome& shard : result.shards) {
    report.loss += static_cast<double>(shard.loss) / (1 << 20);
    report.active += static_cast<double>(shard.active);
  }
  report.examples += flight.examples.size();
  in_flight_.push_back(std::move(flight));
  return {};
}

Result<OneProcessRun::EpochReport> OneProcessRun::train_epoch(std::uint32_t epoch) {
  EpochReport report;
  const Instant start = monotonic_now();
  const double cpu_start = cpu_seconds();
  const BatchIndex end = (epoch + 1) * plan_.batches_per_epoch();
  for (BatchIndex batch = epoch * plan_.batches_per_epoch(); batch < end; ++batch) {
    if (auto trained = train_batch(batch, report); !trained) return trained.error();
    if (!plan_.is_round_end(batch + 1)) continue;
    apply_before(batch + 1, report);
    const double commit_start = cpu_seconds();
    for (std::uint32_t s = 0; s < map_.input_shards(); ++s)
      (void)input_.commit(map_.input_shard(s));
    report.input_cpu_seconds += cpu_seconds() - commit_start;
  }
  report.cpu_seconds = cpu_seconds() - cpu_start;
  report.seconds = seconds_since(start);
  report.loss /= static_cast<double>(report.examples);
  report.active /= static_cast<double>(report.examples);
  return report;
}

Result<OneProcessRun::Evaluation> OneProcessRun::evaluate(const PackedDataset& test,
                                                          std::uint64_t points_max) {
  MetricSums sums(propensities_);
  BucketSums buckets(label_counts_, propensities_);
  const std::uint64_t points = std::min(points_max, test.points());
  for (std::uint64_t begin = 0; begin < points; begin += kEvaluatedAtOnce) {
    std::vector<ExampleView> examples;
    for (std::uint64_t p = begin; p < std::min(begin + kEvaluatedAtOnce, points); ++p) {
      examples.push_back(test.example(p));
    }
    EvalUnit unit;
    unit.leases = leases_;
    unit.top_k = kTopK;
    unit.hidden = std::make_shared<const Bytes>(pack(hidden_codes(examples)));
    Result<EvalResult> result = output_.evaluate(unit);
    if (!result) return result.error();
    for (std::size_t e = 0; e < examples.size(); ++e) {
      std::vector<std::uint32_t> ranked;
      for (std::uint32_t k = 0; k < result->top_k; ++k) {
        ranked.push_back(map_.label_of_neuron(result->best[e * result->top_k + k].neuron));
      }
      sums.add(examples[e].labels, ranked);
      buckets.add(examples[e].labels, ranked);
    }
  }
  return Evaluation{sums.metrics(), buckets.metrics()};
}

}  // namespace gleaner
