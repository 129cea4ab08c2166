#include "volunteer/train/output/unit_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "common/limits.hpp"
#include "common/model/row_checks.hpp"

namespace gleaner {
namespace {

Error refuse(const std::string& what) {
  return {ErrorCode::kProtocol, what};
}

Result<void> check_positives(const UnitBatch& batch, std::span<const LeaseRef> leases,
                             const ShardMap& map, std::uint32_t examples) {
  const auto refuse_batch = [&](const std::string& what) {
    return refuse(fmt::format("batch {}: {}", batch.batch, what));
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

}  // namespace

Result<HiddenCodes> unpack_checked(const SharedBytes& packed, const ModelConfig& config,
                                   const std::string& what) {
  if (packed == nullptr) return refuse(fmt::format("{}: no quantized activations", what));
  Result<HiddenCodes> codes = unpack_hidden(*packed);
  if (!codes) return refuse(fmt::format("{}: {}", what, codes.error().message));
  if (codes->hidden != config.hidden) {
    return refuse(fmt::format("{}: quantized activations {} wide, where the run has {}", what,
                              codes->hidden, config.hidden));
  }
  for (std::size_t example = 0; example < codes->scales.size(); ++example) {
    // Written so that a NaN fails.
    if (!(codes->scales[example] >= 0.0F && codes->scales[example] <= kHiddenScaleMax)) {
      return refuse(fmt::format("{}: example {} has a hidden scale of {}, outside 0 to {}", what,
                                example, codes->scales[example], kHiddenScaleMax));
    }
  }
  return codes;
}

Result<void> check_lease_order(std::span<const LeaseRef> leases) {
  if (leases.empty()) return refuse("a unit without leases");
  for (std::size_t i = 1; i < leases.size(); ++i) {
    if (raw(leases[i].shard) <= raw(leases[i - 1].shard)) {
      return refuse(fmt::format("the unit's leases do not ascend: shard {} after {}",
                                raw(leases[i].shard), raw(leases[i - 1].shard)));
    }
  }
  return {};
}

Result<std::vector<HiddenCodes>> check_unit(const TrainUnit& unit, const ModelConfig& config,
                                            const ShardMap& map, const RunPlan& plan,
                                            ThreadPool& pool) {
  if (auto ordered = check_lease_order(unit.leases); !ordered) return ordered.error();
  if (unit.batches.empty() || unit.batches.size() > kBatchesPerUnitMax) {
    return refuse(fmt::format("a unit of {} batches, where 1 to {} are allowed",
                              unit.batches.size(), kBatchesPerUnitMax));
  }
  std::vector<std::optional<Result<HiddenCodes>>> unpacked(unit.batches.size());
  pool.parallel_for(unpacked.size(), [&](std::size_t i, unsigned /*worker*/) {
    const UnitBatch& batch = unit.batches[i];
    unpacked[i] = unpack_checked(batch.hidden, config, fmt::format("batch {}", batch.batch));
  });
  std::vector<HiddenCodes> codes;
  codes.reserve(unit.batches.size());
  for (std::size_t i = 0; i < unit.batches.size(); ++i) {
    const UnitBatch& batch = unit.batches[i];
    if (batch.batch >= plan.batch_count() || batch.batch != unit.batches[0].batch + i) {
      return refuse(fmt::format("batch {} is out of order, or beyond the run's {} batches",
                                batch.batch, plan.batch_count()));
    }
    Result<HiddenCodes>& of_batch = *unpacked[i];
    if (!of_batch) return of_batch.error();
    if (of_batch->examples != plan.examples_in(batch.batch)) {
      return refuse(fmt::format("batch {} has {} examples, where the plan has {}", batch.batch,
                                of_batch->examples, plan.examples_in(batch.batch)));
    }
    if (auto checked = check_positives(batch, unit.leases, map, of_batch->examples); !checked) {
      return checked.error();
    }
    codes.push_back(std::move(*of_batch));
  }
  return codes;
}

}  // namespace gleaner
