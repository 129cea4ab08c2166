#include "common/train/shard_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "common/limits.hpp"
#include "common/model/row_checks.hpp"
#include "common/train/exact_top.hpp"
#include "common/train/kernels.hpp"
#include "common/train/output_layer.hpp"
#include "common/train/output_shard.hpp"
#include "common/train/sim_hash.hpp"
#include "common/work/quantized_gradient.hpp"

namespace gleaner {
namespace {

Result<void> check_positives(const UnitBatch& batch, std::span<const LeaseRef> leases,
                             const ShardMap& map, std::uint32_t examples) {
  const auto refuse_batch = [&](const std::string& what) {
    return refuse("batch {}: {}", batch.batch, what);
  };
  const std::vector<std::uint32_t>& offsets = batch.positives.offsets;
  const std::vector<std::uint32_t>& neurons = batch.positives.neurons;
  if (offsets.size() != examples + std::size_t{1} || offsets.front() != 0 ||
      offsets.back() != neurons.size() || !std::is_sorted(offsets.begin(), offsets.end())) {
    return refuse_batch(
        fmt::format("the offsets of its true labels do not divide {} labels among "
                    "{} examples",
                    neurons.size(), examples));
  }
  if (neurons.size() > kPositivesPerBatchMax) {
    return refuse_batch(fmt::format("{} true labels, above the limit of {}", neurons.size(),
                                    kPositivesPerBatchMax));
  }
  for (std::size_t example = 0; example < examples; ++example) {
    // Neurons and leases both ascend, so one pass over the leases serves an example.
    auto lease = leases.begin();
    for (std::uint32_t i = offsets[example]; i < offsets[example + 1]; ++i) {
      if (i > offsets[example] && neurons[i] <= neurons[i - 1]) {
        return refuse_batch(fmt::format("the true labels of example {} do not ascend", example));
      }
      while (lease != leases.end() && map.neurons(lease->shard).end <= neurons[i]) ++lease;
      if (lease == leases.end() || neurons[i] < map.neurons(lease->shard).begin) {
        return refuse_batch(
            fmt::format("neuron {}, a true label of example {}, lies in none of "
                        "the unit's shards",
                        neurons[i], example));
      }
    }
  }
  return {};
}

// Most examples x hidden units of fused batches. A step accesses their gradients at random, so they
// must fit the second cache level.
constexpr std::size_t kFusedCells = std::size_t{256} << 10;

std::unique_ptr<SimHash> sim_hash_of(const ModelConfig& config, const Kernels& kernels) {
  if (config.sampling != Sampling::kLsh) return nullptr;
  return std::make_unique<SimHash>(config, kernels);
}

}  // namespace

Result<QuantizedActivations> unpack_checked(const SharedBytes& packed, const ModelConfig& config,
                                            const std::string& what) {
  if (packed == nullptr) return refuse("{}: no quantized activations", what);
  Result<QuantizedActivations> codes = unpack_quantized(*packed);
  if (!codes) return refuse("{}: {}", what, codes.error().message);
  if (codes->hidden != config.hidden) {
    return refuse("{}: quantized activations {} wide, where the run has {}", what, codes->hidden,
                  config.hidden);
  }
  for (std::size_t example = 0; example < codes->scales.size(); ++example) {
    // Written so that a NaN fails.
    if (!(codes->scales[example] >= 0.0F && codes->scales[example] <= kHiddenScaleMax)) {
      return refuse("{}: example {} has a hidden scale of {}, outside 0 to {}", what, example,
                    codes->scales[example], kHiddenScaleMax);
    }
  }
  return codes;
}

Result<void> check_lease_order(std::span<const LeaseRef> leases) {
  if (leases.empty()) return refuse("a unit without leases");
  for (std::size_t i = 1; i < leases.size(); ++i) {
    if (raw(leases[i].shard) <= raw(leases[i - 1].shard)) {
      return refuse("the unit's leases do not ascend: shard {} after {}", raw(leases[i].shard),
                    raw(leases[i - 1].shard));
    }
  }
  return {};
}

Result<std::vector<QuantizedActivations>> check_unit(const TrainUnit& unit,
                                                     const ModelConfig& config, const ShardMap& map,
                                                     const RunPlan& plan, ThreadPool& pool) {
  if (auto ordered = check_lease_order(unit.leases); !ordered) return ordered.error();
  if (unit.batches.empty() || unit.batches.size() > kBatchesPerUnitMax) {
    return refuse("a unit of {} batches, where 1 to {} are allowed", unit.batches.size(),
                  kBatchesPerUnitMax);
  }
  std::vector<std::optional<Result<QuantizedActivations>>> unpacked(unit.batches.size());
  pool.parallel_for(unpacked.size(), [&](std::size_t i, unsigned /*worker*/) {
    const UnitBatch& batch = unit.batches[i];
    unpacked[i] = unpack_checked(batch.hidden, config, fmt::format("batch {}", batch.batch));
  });
  std::vector<QuantizedActivations> codes;
  codes.reserve(unit.batches.size());
  for (std::size_t i = 0; i < unit.batches.size(); ++i) {
    const UnitBatch& batch = unit.batches[i];
    if (batch.batch >= plan.batch_count() || batch.batch != unit.batches[0].batch + i) {
      return refuse("batch {} is out of order, or beyond the run's {} batches", batch.batch,
                    plan.batch_count());
    }
    Result<QuantizedActivations>& of_batch = *unpacked[i];
    if (!of_batch) return of_batch.error();
    if (of_batch->examples != plan.examples_in(batch.batch)) {
      return refuse("batch {} has {} examples, where the plan has {}", batch.batch,
                    of_batch->examples, plan.examples_in(batch.batch));
    }
    if (auto checked = check_positives(batch, unit.leases, map, of_batch->examples); !checked) {
      return checked.error();
    }
    codes.push_back(std::move(*of_batch));
  }
  return codes;
}

struct ShardTrainer::Impl {
  const ShardTrainer& trainer;
  const ModelConfig& config;
  const RunPlan& plan;
  const Kernels& kernels;
  ThreadPool& pool;
  std::unique_ptr<SimHash> sim_hash;
  ShardContext context;
  std::vector<QueryBatch> queries;             // of the batches that are trained together
  std::vector<ShardScratch> scratch;           // one a worker
  OutputLayer layer;                           // the shards that are loaded
  std::optional<std::uint64_t> layer_version;  // version() of the shards that the layer holds

  Impl(const ShardTrainer& owner, ThreadPool& threads, const Kernels& table)
      : trainer(owner),
        config(owner.config_),
        plan(owner.plan_),
        kernels(table),
        pool(threads),
        sim_hash(sim_hash_of(config, kernels)),
        context{config, owner.map_, kernels, sim_hash.get()},
        queries(kFusedBatches, QueryBatch(config, sim_hash.get())),
        scratch(threads.threads(), ShardScratch(config)),
        layer(context, threads, scratch) {}

  static std::vector<OutputShard*> output_shards(std::span<Holding* const> held) {
    std::vector<OutputShard*> shards;
    for (HeldOutputShard* shard : shards_of<HeldOutputShard>(held))
      shards.push_back(&shard->shard());
    return shards;
  }

  // The number of batches that can be fused, the last one at most up to a rehash.
  [[nodiscard]] std::size_t fusible(std::span<const UnitBatch> batches) const;
  // Trains fused batches. Appends their results and commits.
  void train_batches(std::span<const UnitBatch> batches,
                     std::span<const QuantizedActivations> codes, const TrainUnit& unit,
                     std::span<Holding* const> held, UnitOutcome& outcome);
  // Tells the layer which shards are loaded, if they have changed.
  void hold_loaded();
  // Writes the gradients of the last batches to their results, with checks if the unit wants them.
  void pack_gradients(std::span<const QuantizedActivations> codes, bool wants_checks,
                      UnitResult& result);
};

std::size_t ShardTrainer::Impl::fusible(std::span<const UnitBatch> batches) const {
  const std::size_t cells = std::size_t{config.batch_examples} * config.hidden;
  const std::size_t most = std::clamp<std::size_t>(kFusedCells / cells, 1, kFusedBatches);
  std::size_t count = 1;
  while (count < std::min(batches.size(), most) && !plan.rehashes_after(batches[count - 1].batch)) {
    ++count;
  }
  return count;
}

void ShardTrainer::Impl::hold_loaded() {
  if (layer_version == trainer.version()) return;
  layer_version = trainer.version();
  layer.hold(output_shards(trainer.loaded()));
}

void ShardTrainer::Impl::train_batches(std::span<const UnitBatch> batches,
                                       std::span<const QuantizedActivations> codes,
                                       const TrainUnit& unit, std::span<Holding* const> held,
                                       UnitOutcome& outcome) {
  std::array<ShardBatch, kFusedBatches> work;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    queries[i].prepare(batches[i].batch, codes[i], pool);
    work[i] = {&queries[i], &batches[i].positives, batches[i].output_rate};
  }
  const std::vector<OutputShard*> trained = output_shards(held);
  std::vector<ShardOutcome> outcomes(trained.size() * batches.size());
  hold_loaded();
  layer.train(std::span(work).first(batches.size()), trained, outcomes);

  const BatchIndex last = batches.back().batch;
  const bool ends_round = plan.is_round_end(last + 1);
  std::vector<std::vector<SparseUpdate>> updates(trained.size());
  if (ends_round || plan.rehashes_after(last)) {
    layer.for_each_shard(trained.size(), [&](std::size_t index, Team team) {
      if (ends_round) {
        updates[index] = trained[index]->commit(team);
      } else {
        trained[index]->rehash(team);
      }
    });
    layer.mark_codes_changed();
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    BatchResult& result = outcome.result.batches.emplace_back();
    result.batch = batches[i].batch;
    for (std::size_t index = 0; index < held.size(); ++index) {
      result.shards.push_back(outcomes[index * batches.size() + i]);
    }
  }
  if (unit.wants_gradient) pack_gradients(codes, unit.may_be_summed, outcome.result);
  for (std::size_t i = 0; i < held.size(); ++i) {
    Holding& holding = *held[i];
    holding.next_batch = last + 1;
    if (!ends_round) continue;
    end_round(holding, plan.round_of(last), std::move(updates[i]), outcome.commits);
  }
}

void ShardTrainer::Impl::pack_gradients(std::span<const QuantizedActivations> codes,
                                        bool wants_checks, UnitResult& result) {
  std::vector<std::vector<std::int32_t>> sums;
  for (const QuantizedActivations& of_batch : codes) sums.emplace_back(of_batch.codes.size());
  // Every thread has a part of every gradient.
  const std::size_t parts = pool.threads();
  pool.parallel_for(parts * sums.size(), [&](std::size_t index, unsigned /*worker*/) {
    const std::size_t batch = index / parts;
    const std::size_t part = index % parts;
    const std::size_t begin = sums[batch].size() * part / parts;
    const std::size_t end = sums[batch].size() * (part + 1) / parts;
    const auto sum = std::span(sums[batch]).subspan(begin, end - begin);
    for (const ShardScratch& of_worker : scratch) of_worker.add_gradient_to(batch, begin, sum);
  });
  const std::size_t first = result.batches.size() - sums.size();
  if (wants_checks) result.checks.resize(result.batches.size());
  pool.parallel_for(sums.size(), [&](std::size_t batch, unsigned /*worker*/) {
    result.batches[first + batch].gradient = pack_gradient(codes[batch], sums[batch]);
    if (wants_checks) result.checks[first + batch] = gradient_check(codes[batch], sums[batch]);
  });
}

ShardTrainer::ShardTrainer(const ModelConfig& config, ThreadPool& pool)
    : ShardTrainer(config, pool, default_kernels()) {}

ShardTrainer::ShardTrainer(const ModelConfig& config, ThreadPool& pool, const Kernels& kernels)
    : LeasedShards(config, /*are_output=*/true),
      impl_(std::make_unique<Impl>(*this, pool, kernels)) {}

ShardTrainer::~ShardTrainer() = default;

std::unique_ptr<LeasedShard> ShardTrainer::make_shard(const LeaseGrant& grant) {
  return std::make_unique<HeldOutputShard>(impl_->context, impl_->pool, impl_->scratch, grant);
}

Result<ShardTrainer::UnitOutcome> ShardTrainer::train(const TrainUnit& unit) {
  const auto codes = check_unit(unit, config_, map_, plan_, impl_->pool);
  if (!codes) return codes.error();
  const auto held = find_at(unit.leases, unit.batches[0].batch);
  if (!held) return held.error();
  UnitOutcome outcome;
  outcome.result.unit = unit.unit;
  const std::span<const UnitBatch> batches(unit.batches);
  for (std::size_t done = 0, count = 0; done < batches.size(); done += count) {
    count = impl_->fusible(batches.subspan(done));
    impl_->train_batches(batches.subspan(done, count), std::span(*codes).subspan(done, count), unit,
                         *held, outcome);
  }
  return outcome;
}

Result<EvalResult> ShardTrainer::evaluate(const EvalUnit& unit) {
  if (auto ordered = check_lease_order(unit.leases); !ordered) return ordered.error();
  if (unit.top_k < 1 || unit.top_k > kTopKMax) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the unit asks for the best {} labels: 1 to {} are possible",
                             unit.top_k, kTopKMax)};
  }
  const auto held = find_loaded(unit.leases);
  if (!held) return held.error();
  const Result<QuantizedActivations> codes =
      unpack_checked(unit.hidden, config_, fmt::format("evaluation {}", raw(unit.unit)));
  if (!codes) return codes.error();
  const std::vector<OutputShard*> held_shards = Impl::output_shards(*held);
  const std::vector<const OutputShard*> shards(held_shards.begin(), held_shards.end());
  EvalResult result;
  result.unit = unit.unit;
  result.top_k = exact_top_entries(shards, unit.top_k);
  result.best = exact_top(shards, *codes, unit.top_k, impl_->kernels, impl_->pool);
  return result;
}

std::uint64_t ShardTrainer::memory_bytes() const {
  std::uint64_t bytes = impl_->layer.memory_bytes() + LeasedShards::memory_bytes();
  for (const QueryBatch& queries : impl_->queries) bytes += queries.memory_bytes();
  for (const ShardScratch& scratch : impl_->scratch) bytes += scratch.memory_bytes();
  return bytes;
}

std::uint64_t ShardTrainer::shard_bytes(const ModelConfig& config) {
  const std::uint64_t rows =
      (std::uint64_t{config.labels} + config.output_shards - 1) / config.output_shards;
  // Weights, bias, state and slot, three times: the row, and its copies of this round and the round
  // before.
  std::uint64_t bytes = rows * 3 * (config.hidden + std::uint64_t{3}) * sizeof(float);
  if (config.sampling == Sampling::kLsh) {
    bytes += ShardCodes::bytes(config.tables, config.hash_bits, rows) +
             HashTables::bytes(config.tables, config.hash_bits, rows);
  }
  return bytes;
}

}  // namespace gleaner
