#include "common/train/wide_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/limits.hpp"
#include "common/train/prepared_examples.hpp"
#include "common/train/shard_trainer.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kThreads = 16;  // that are counted on

// A shard takes no more.
std::uint64_t bytes_of(const ModelConfig& config, std::uint64_t weights) {
  const std::uint64_t rows = config.wide_rows;
  const std::uint64_t neurons = config.labels / config.output_shards + std::uint64_t{1};
  // Its place, its number of examples, and two words per thread that chooses neurons.
  const std::uint64_t of_neurons = neurons * (28 + 8 * kThreads);
  // Rows come in any order and are laid out in another place. Those of a hand-over come whole, with
  // what the short lists know.
  const std::uint64_t loading = 16 * weights + rows * (40 + (2 * kWideWeights + 6) * sizeof(float));
  // A weight with its feature, its posting, its value in the index and its entry in a short list;
  // the copies within a round and of the one before; what the short lists know, which has spare
  // room. A row's places, and the same copies of its bias and state.
  const std::uint64_t training =
      (8 + 6 + 4 + 8 + 2 * 4 + 2 * 4) * weights + rows * (40 + 2 * 16 + 2 * 12);
  return of_neurons + std::max(loading, training);
}

}  // namespace

WideTrainer::WideTrainer(const ModelConfig& config, ThreadPool& pool)
    : WideTrainer(config, pool, default_kernels()) {}

WideTrainer::WideTrainer(const ModelConfig& config, ThreadPool& pool, const Kernels& kernels)
    : LeasedShards(config, /*are_output=*/true),
      kernels_(kernels),
      pool_(pool),
      dropout_(config_),
      layer_(config_, pool) {}

std::unique_ptr<LeasedShard> WideTrainer::make_shard(const LeaseGrant& grant) {
  return std::make_unique<WideShard>(config_, map_, kernels_, grant.lease.shard,
                                     grant.label_counts);
}

void WideTrainer::hold_loaded() {
  if (layer_version_ == version()) return;
  layer_version_ = version();
  layer_.hold(shards_of<WideShard>(loaded()));
}

Result<void> WideTrainer::check(const TrainUnit& unit) {
  const auto checked = check_unit(unit, config_, map_, plan_, pool_);
  return checked ? Result<void>() : checked.error();
}

Result<std::uint32_t> WideTrainer::check(const EvalUnit& unit) const {
  if (auto ordered = check_lease_order(unit.leases); !ordered) return ordered.error();
  if (unit.top_k < 1 || unit.top_k > kTopKMax) {
    return refuse("a unit asks for the best {} labels; it can be 1 to {}", unit.top_k, kTopKMax);
  }
  const auto codes =
      unpack_checked(unit.hidden, config_, fmt::format("evaluation {}", raw(unit.unit)));
  if (!codes) return codes.error();
  return codes->examples;
}

void WideTrainer::train_batch(const UnitBatch& batch, std::span<const ExampleView> examples,
                              std::span<Holding* const> held, ShardTrainer::UnitOutcome& outcome) {
  const std::vector<WideShard*> trained = shards_of<WideShard>(held);
  BatchResult& result = outcome.result.batches.emplace_back();
  result.batch = batch.batch;
  result.shards.resize(held.size());
  const UnitLengths scaled(examples, config_.features);
  layer_.train({batch.batch, dropout_.apply(batch.batch, scaled.views()), &batch.positives,
                batch.output_rate},
               trained, result.shards);
  const bool ends_round = plan_.is_round_end(batch.batch + 1);
  std::vector<std::vector<SparseUpdate>> updates(held.size());
  if (plan_.rehashes_after(batch.batch)) {
    pool_.parallel_for(held.size(), [&](std::size_t i, unsigned /*worker*/) {
      ends_round ? void(updates[i] = trained[i]->commit()) : trained[i]->freshen();
    });
    layer_.mark_lists_stale();
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    held[i]->next_batch = batch.batch + 1;
    if (!ends_round) continue;
    end_round(*held[i], plan_.round_of(batch.batch), std::move(updates[i]), outcome.commits);
  }
}

Result<ShardTrainer::UnitOutcome> WideTrainer::train(
    const TrainUnit& unit, std::span<const std::span<const ExampleView>> examples) {
  const auto held = find_at(unit.leases, unit.batches[0].batch);
  if (!held) return held.error();
  ShardTrainer::UnitOutcome outcome;
  outcome.result.unit = unit.unit;
  hold_loaded();
  for (std::size_t i = 0; i < unit.batches.size(); ++i) {
    train_batch(unit.batches[i], examples[i], *held, outcome);
  }
  return outcome;
}

Result<EvalResult> WideTrainer::evaluate(const EvalUnit& unit,
                                         std::span<const ExampleView> examples) {
  const auto held = find_loaded(unit.leases);
  if (!held) return held.error();
  hold_loaded();
  EvalResult result;
  result.unit = unit.unit;
  const UnitLengths scaled(examples, config_.features);
  result.best = layer_.exact_top(shards_of<WideShard>(*held), scaled.views(), unit.top_k);
  result.top_k =
      examples.empty() ? 0 : static_cast<std::uint32_t>(result.best.size() / examples.size());
  return result;
}

std::uint64_t WideTrainer::memory_bytes() const {
  return layer_.memory_bytes() + LeasedShards::memory_bytes();
}

std::uint64_t WideTrainer::shard_bytes(const ModelConfig& config, const WideWeights& weights) {
  return bytes_of(config, weights.mean);
}

std::uint64_t WideTrainer::holder_bytes(const ModelConfig& config, const WideWeights& weights) {
  // A feature's postings and short list end somewhere, and each thread spreads a neuron's features.
  return bytes_of(config, weights.mean + weights.beyond) - bytes_of(config, weights.mean) +
         std::uint64_t{config.features} * (12 + 4 * kThreads);
}

}  // namespace gleaner
