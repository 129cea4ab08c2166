#include "tests/bench/machine/one_process_run.hpp"

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "common/time.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"

namespace gleaner {
namespace {

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double seconds_since(Instant start) {
  return static_cast<double>((monotonic_now() - start).count()) * 1e-6;
}

}  // namespace

OneProcessRun::OneProcessRun(const ModelConfig& config, PointSource points,
                             std::vector<std::uint32_t> label_counts, ThreadPool& pool,
                             const Kernels& kernels)
    : points_(std::move(points)),
      label_counts_(std::move(label_counts)),
      plan_(config),
      map_(config),
      input_(config, pool, kernels),
      output_(config, pool, kernels) {}

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

void OneProcessRun::forward(BatchIndex batch, Report& report) {
  InFlight& flight = in_flight_.emplace_back();
  flight.batch = batch;
  for (const std::uint64_t point : plan_.points_of(batch)) {
    flight.examples.push_back(points_(point));
  }
  const double start = cpu_seconds();
  flight.codes = input_.forward(flight.examples, batch);
  report.input_cpu_seconds += cpu_seconds() - start;
}

void OneProcessRun::backward(Report& report) {
  const double start = cpu_seconds();
  const InFlight& done = in_flight_.front();
  input_.backward(done.batch, plan_.rates(done.batch).input, done.examples, done.codes,
                  done.gradient);
  in_flight_.erase(in_flight_.begin());
  report.input_cpu_seconds += cpu_seconds() - start;
}

void OneProcessRun::commit(Report& report) {
  const double start = cpu_seconds();
  for (std::uint32_t s = 0; s < map_.input_shards(); ++s) (void)input_.commit(map_.input_shard(s));
  report.input_cpu_seconds += cpu_seconds() - start;
}

Result<ShardTrainer::UnitOutcome> OneProcessRun::train_shards(std::span<const InFlight> flights,
                                                              Report& report) {
  TrainUnit unit;
  unit.unit = UnitId{flights.front().batch};
  unit.leases = leases_;
  for (const InFlight& flight : flights) {
    unit.batches.push_back({flight.batch, std::make_shared<const Bytes>(pack(flight.codes)),
                            positives_of(flight.examples), plan_.rates(flight.batch).output});
  }
  const double start = cpu_seconds();
  Result<ShardTrainer::UnitOutcome> outcome = output_.train(unit);
  report.output_cpu_seconds += cpu_seconds() - start;
  return outcome;
}

Result<void> OneProcessRun::take(const BatchResult& result, InFlight& flight,
                                 Report& report) const {
  flight.gradient.assign(flight.codes.codes.size(), 0);
  if (!result.gradient.empty()) {
    if (auto added = add_gradient(flight.codes, result.gradient, flight.gradient); !added) {
      return added;
    }
  }
  for (const ShardOutcome& shard : result.shards) {
    report.loss += static_cast<double>(shard.loss) / (1 << 20);
    report.active += static_cast<double>(shard.active);
  }
  report.examples += flight.examples.size();
  return {};
}

Result<void> OneProcessRun::train_unit(Report& report) {
  const std::size_t done = trained_ - in_flight_.front().batch;
  const std::size_t count = std::min<std::size_t>(batches_per_unit_, in_flight_.size() - done);
  const std::span<InFlight> flights = std::span(in_flight_).subspan(done, count);
  const auto outcome = train_shards(flights, report);
  if (!outcome) return outcome.error();
  if (observer_) {
    for (const ShardCommit& commit : outcome->commits) observer_(commit);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (auto taken = take(outcome->result.batches.at(i), flights[i], report); !taken) return taken;
  }
  trained_ += count;
  return {};
}

Result<OneProcessRun::Report> OneProcessRun::train(BatchIndex end) {
  Report report;
  const Instant start = monotonic_now();
  const double cpu_start = cpu_seconds();
  while (const auto step = schedule_.next()) {
    if (step->kind == Schedule::Kind::kForward) {
      if (step->index >= end) break;
      forward(step->index, report);
    } else if (step->kind == Schedule::Kind::kBackward) {
      if (step->index >= trained_) {
        if (auto trained = train_unit(report); !trained) return trained.error();
      }
      backward(report);
    } else {
      commit(report);
    }
    schedule_.advance();
  }
  while (trained_ < end) {
    if (auto trained = train_unit(report); !trained) return trained.error();
  }
  report.cpu_seconds = cpu_seconds() - cpu_start;
  report.seconds = seconds_since(start);
  report.loss /= static_cast<double>(report.examples);
  report.active /= static_cast<double>(report.examples);
  return report;
}

Result<EvalResult> OneProcessRun::score(std::span<const ExampleView> examples,
                                        std::uint32_t top_k) {
  EvalUnit unit;
  unit.leases = leases_;
  unit.top_k = top_k;
  unit.hidden = std::make_shared<const Bytes>(pack(quantized_activations(examples)));
  return output_.evaluate(unit);
}

}  // namespace gleaner
