#include "common/train/wide/wide_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/limits.hpp"
#include "common/train/kernels.hpp"
#include "common/train/wide/wide_index.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kThreads = 16;  // assumed threads of a volunteer

// Upper bound of a held shard's bytes.
std::uint64_t bytes_of(const ModelConfig& config, std::uint64_t weights) {
  const std::uint64_t rows = config.wide_rows;
  const std::uint64_t neurons = config.labels / config.output_shards + std::uint64_t{1};
  // Place and number of examples.
  const std::uint64_t of_neurons = neurons * 28;
  // Rows arrive in any order, and are then copied into ascending order.
  const std::uint64_t loading = 16 * weights + rows * 40;
  // Weights with their features, and copies of this round and the round before; per row its places,
  // and the same copies of bias and state.
  const std::uint64_t training = (8 + 2 * 4) * weights + rows * (28 + 2 * 16);
  return of_neurons + std::max(loading, training);
}

// Upper bound of the bytes that a thread needs to train a shard.
std::uint64_t round_bytes(const ModelConfig& config, std::uint64_t weights) {
  const std::uint64_t neurons = config.labels / config.output_shards + std::uint64_t{1};
  // Examples and pairs that wait.
  constexpr std::uint64_t kKept = std::uint64_t{8} << 20;
  // Per weight its feature and list entry; per feature its list, place and bits.
  return kKept + weights * (4 + 8 + 12) + neurons * 32 + config.features / 4;
}

}  // namespace

EvalResult score(const EvalUnit& unit, const WideShard& shard, std::uint32_t features,
                 const WideBatch& examples) {
  const WideShard* const shards[] = {&shard};
  const WideIndex index(features, shards);
  EvalResult result;
  result.unit = unit.unit;
  result.top_k = examples.examples() > 0 ? std::min(unit.top_k, index.neurons()) : 0;
  result.best.resize(std::size_t{examples.examples()} * result.top_k);
  WideIndex::Scratch scratch;
  for (std::uint32_t e = 0; e < examples.examples(); ++e) {
    const auto best = std::span(result.best).subspan(std::size_t{e} * result.top_k, result.top_k);
    index.top(examples.example(e), best, scratch);
  }
  return result;
}

WideTrainer::WideTrainer(const ModelConfig& config) : WideTrainer(config, default_kernels()) {}

WideTrainer::WideTrainer(const ModelConfig& config, const Kernels& kernels)
    : LeasedShards(config, /*are_output=*/true), kernels_(kernels) {}

std::unique_ptr<LeasedShard> WideTrainer::make_shard(const LeaseGrant& grant) {
  return std::make_unique<WideShard>(config_, map_, kernels_, grant.lease.shard,
                                     grant.label_counts);
}

Result<std::shared_ptr<WideShard>> WideTrainer::find_shard(const LeaseRef& lease) const {
  const auto held = find_loaded({&lease, 1});
  if (!held) return held.error();
  return std::static_pointer_cast<WideShard>(held->front()->shard);
}

Result<float> WideTrainer::check(const TrainUnit& unit) const {
  if (unit.leases.size() != 1 || unit.batches.size() != 1) {
    return refuse("a unit of {} shards and {} batches, where a shard goes through a round",
                  unit.leases.size(), unit.batches.size());
  }
  if (auto held = find_loaded(unit.leases); !held) return held.error();
  const UnitBatch& first = unit.batches.front();
  if (first.batch >= plan_.batch_count() || !plan_.is_round_end(first.batch)) {
    return refuse("batch {} begins no round of the run", first.batch);
  }
  if ((first.hidden && !first.hidden->empty()) || !first.positives.neurons.empty() ||
      first.positives.offsets.size() > 1) {
    return refuse("batch {} brings examples, which the holder of a wide shard has", first.batch);
  }
  const float whole = plan_.rates(first.batch).output;
  float factor = 1;
  for (std::uint32_t cut = 0; cut <= kRateHalvingsMax; ++cut, factor /= 2) {
    if (whole * factor == first.output_rate) return factor;
  }
  return refuse("batch {} at a rate of {}, which halves {} by no number of times", first.batch,
                first.output_rate, whole);
}

Result<std::uint32_t> WideTrainer::check(const EvalUnit& unit) const {
  if (unit.leases.size() != 1) return refuse("an evaluation of {} shards", unit.leases.size());
  if (auto held = find_loaded(unit.leases); !held) return held.error();
  if (unit.top_k < 1 || unit.top_k > kTopKMax) {
    return refuse("a unit asks for the best {} labels; it can be 1 to {}", unit.top_k, kTopKMax);
  }
  const auto codes =
      unpack_checked(unit.hidden, config_, fmt::format("evaluation {}", raw(unit.unit)));
  if (!codes) return codes.error();
  if (codes->examples > kBatchExamplesMax) {
    return refuse("an evaluation of {} examples, where {} are allowed", codes->examples,
                  kBatchExamplesMax);
  }
  return codes->examples;
}

Result<std::unique_ptr<WideRound>> WideTrainer::begin(const TrainUnit& unit) const {
  const BatchIndex first = unit.batches.front().batch;
  if (auto held = find_at(unit.leases, first); !held) return held.error();
  auto shard = find_shard(unit.leases.front());
  return std::make_unique<WideRound>(config_, plan_, std::move(shard).value(), first);
}

Result<ShardTrainer::UnitOutcome> WideTrainer::finish(const TrainUnit& unit, const WideRound& round,
                                                      std::vector<SparseUpdate> update) {
  const BatchIndex first = unit.batches.front().batch;
  const auto held = find_at(unit.leases, first);
  if (!held) return held.error();
  ShardTrainer::UnitOutcome outcome;
  outcome.result.unit = unit.unit;
  const auto [of_first, of_others] = round.sums();
  outcome.result.batches.push_back({first, {of_first}, {}});
  if (round.next_batch() > first + 1) {
    outcome.result.batches.push_back({first + 1, {of_others}, {}});
  }
  held->front()->next_batch = round.next_batch();
  end_round(*held->front(), plan_.round_of(first), std::move(update), outcome.commits);
  return outcome;
}

std::uint64_t WideTrainer::shard_bytes(const ModelConfig& config, const WideWeights& weights) {
  return bytes_of(config, weights.mean);
}

std::uint64_t WideTrainer::holder_bytes(const ModelConfig& config, const WideWeights& weights) {
  const std::uint64_t rounds = std::min<std::uint64_t>(kThreads, config.output_shards);
  return bytes_of(config, weights.mean + weights.beyond) - bytes_of(config, weights.mean) +
         (rounds - 1) * round_bytes(config, weights.mean) +
         round_bytes(config, weights.mean + weights.beyond);
}

}  // namespace gleaner
