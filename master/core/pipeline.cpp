#include "master/core/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/work/quantized_gradient.hpp"

namespace gleaner {
Pipeline::Pipeline(const RunPlan& plan, const ShardMap& map, RoundIndex checkpoint)
    : plan_(plan),
      map_(map),
      schedule_(plan, checkpoint),
      frontier_(plan.round_begin(checkpoint)),
      applied_(frontier_) {}

std::vector<WorkerTask> Pipeline::advance(RoundIndex rounds_open) {
  std::vector<WorkerTask> tasks;
  const BatchIndex forward_end = plan_.round_begin(std::min(rounds_open, plan_.round_count()));
  while (const auto step = schedule_.next(forward_end)) {
    if (step->kind == Schedule::Kind::kForward) {
      tasks.emplace_back(ForwardTask{step->index});
    } else if (step->kind == Schedule::Kind::kBackward) {
      if (step->index >= frontier_) break;
      BatchRecord& record = log_.at(step->index);
      if (record.covered_count < map_.output_shards()) break;
      tasks.emplace_back(BackwardTask{step->index, plan_.rates(step->index).input,
                                      std::move(record.codes), std::move(record.gradient)});
    } else {
      tasks.emplace_back(CommitInputTask{static_cast<RoundIndex>(step->index)});
    }
    schedule_.advance(forward_end);
  }
  return tasks;
}

void Pipeline::forward_done(const ForwardDone& done) {
  GLEANER_CHECK(done.batch == frontier_);
  BatchRecord record;
  record.packed = done.packed;
  record.codes = done.codes;
  record.positives = done.positives;
  record.examples = done.codes->examples;
  record.code_length = done.code_length;
  record.covered.resize(map_.output_shards());
  record.digests.resize(map_.output_shards());
  record.units_on = count_units_on(*done.codes);
  record.gradient = std::make_shared<std::vector<std::int32_t>>(done.codes->codes.size());
  log_.emplace(done.batch, std::move(record));
  ++frontier_;
}

void Pipeline::backward_done(BatchIndex batch) {
  GLEANER_CHECK(batch == applied_ && batch < schedule_.next_backward());
  ++applied_;
}

const BatchRecord& Pipeline::at(BatchIndex batch) const {
  const auto found = log_.find(batch);
  GLEANER_CHECK(found != log_.end());
  return found->second;
}

bool Pipeline::is_covered(BatchIndex batch, ShardId shard) const {
  return at(batch).covered[raw(shard)] != 0;
}

Result<void> Pipeline::check_digests(const BatchRecord& record, BatchIndex batch,
                                     const std::vector<ShardOutcome>& shards) const {
  for (const ShardOutcome& outcome : shards) {
    const std::uint32_t shard = raw(outcome.shard);
    const auto& before = record.digests[shard];
    if (before && *before != outcome.gradient_digest) {
      return Error{ErrorCode::kFault,
                   fmt::format("batch {} on shard {} gave digest {:016x}, but {:016x} before",
                               batch, shard, outcome.gradient_digest, *before)};
    }
  }
  return {};
}

Result<void> Pipeline::check_gradient(const BatchRecord& record, BatchIndex batch,
                                      const Bytes& gradient) {
  if (!record.gradient) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("a gradient for batch {}, which has been applied", batch)};
  }
  return check_gradient_size(record.units_on, gradient);
}

void Pipeline::count(BatchRecord& record, const ShardOutcome& outcome) {
  record.loss = add_losses(record.loss, outcome.loss);
  record.active += outcome.active;
  ++record.covered_count;
}

Result<std::vector<AddGradientsTask::Part>> Pipeline::add_results(std::vector<BatchResult> results,
                                                                  bool has_gradient,
                                                                  bool is_audited) {
  for (const BatchResult& result : results) {
    const BatchRecord& record = at(result.batch);
    if (!is_audited) {
      auto same = check_digests(record, result.batch, result.shards);
      if (!same) return same.error();
    }
    if (!has_gradient) continue;
    auto fits = check_gradient(record, result.batch, result.gradient);
    if (!fits) return fits.error();
  }
  std::vector<AddGradientsTask::Part> parts;
  for (BatchResult& result : results) {
    BatchRecord& record = log_.at(result.batch);
    if (has_gradient) {
      parts.push_back({record.codes, std::make_shared<const Bytes>(std::move(result.gradient)),
                       record.gradient, std::nullopt});
    }
    for (const ShardOutcome& outcome : result.shards) {
      const std::uint32_t shard = raw(outcome.shard);
      if (!is_audited) record.digests[shard] = outcome.gradient_digest;
      if (record.covered[shard] != 0) continue;
      record.covered[shard] = 1;
      count(record, outcome);
    }
  }
  return parts;
}

Result<void> Pipeline::promise(UnitResult result, RelayId relay, SessionId session, Instant now) {
  GLEANER_CHECK(result.checks.size() == result.batches.size());
  for (const BatchResult& of_batch : result.batches) {
    const BatchRecord& record = at(of_batch.batch);
    if (auto same = check_digests(record, of_batch.batch, of_batch.shards); !same) return same;
  }
  for (std::size_t i = 0; i < result.batches.size(); ++i) {
    BatchResult& of_batch = result.batches[i];
    BatchRecord& record = log_.at(of_batch.batch);
    for (const ShardOutcome& outcome : of_batch.shards) {
      record.digests[raw(outcome.shard)] = outcome.gradient_digest;
      record.covered[raw(outcome.shard)] = 1;
    }
    record.promised.push_back(
        {relay, session, result.unit, std::move(of_batch.shards), result.checks[i], now});
  }
  return {};
}

Result<AddGradientsTask::Part> Pipeline::keep_promise(
    RelayId relay, BatchIndex batch, const std::vector<std::pair<SessionId, UnitId>>& units,
    Bytes gradient) {
  const auto found = log_.find(batch);
  const Error stale{ErrorCode::kStaleLease,
                    fmt::format("a sum of gradients of batch {} that nobody awaits", batch)};
  if (found == log_.end()) return stale;
  BatchRecord& record = found->second;
  const auto is_of = [&](const PromisedGradient& promised, const auto& unit) {
    return promised.relay == relay && promised.session == unit.first &&
           promised.unit == unit.second;
  };
  for (std::size_t i = 0; i < units.size(); ++i) {
    const bool is_twice = std::find(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(i),
                                    units[i]) != units.begin() + static_cast<std::ptrdiff_t>(i);
    const bool is_promised =
        std::any_of(record.promised.begin(), record.promised.end(),
                    [&](const PromisedGradient& promised) { return is_of(promised, units[i]); });
    if (is_twice || !is_promised) return stale;
  }
  if (auto fits = check_gradient(record, batch, gradient); !fits) return fits.error();
  std::uint64_t check = 0;
  std::erase_if(record.promised, [&](const PromisedGradient& promised) {
    const bool is_kept = std::any_of(units.begin(), units.end(),
                                     [&](const auto& unit) { return is_of(promised, unit); });
    if (!is_kept) return false;
    for (const ShardOutcome& outcome : promised.shards) count(record, outcome);
    check = add_checks(check, promised.check);
    return true;
  });
  return AddGradientsTask::Part{record.codes, std::make_shared<const Bytes>(std::move(gradient)),
                                record.gradient, check};
}

std::vector<std::pair<BatchIndex, ShardId>> Pipeline::break_promises(RelayId relay) {
  std::vector<std::pair<BatchIndex, ShardId>> broken;
  for (auto& [batch, record] : log_) {
    std::erase_if(record.promised, [&, batch = batch, &record = record](const auto& promised) {
      if (promised.relay != relay) return false;
      for (const ShardOutcome& outcome : promised.shards) {
        record.covered[raw(outcome.shard)] = 0;
        broken.emplace_back(batch, outcome.shard);
      }
      return true;
    });
  }
  return broken;
}

std::optional<RelayId> Pipeline::overdue_relay(Instant when) const {
  const auto next = log_.find(schedule_.next_backward());
  if (next == log_.end()) return std::nullopt;
  for (const PromisedGradient& promised : next->second.promised) {
    if (promised.since < when) return promised.relay;
  }
  return std::nullopt;
}

RoundSums Pipeline::sums(RoundIndex round) const {
  RoundSums sums;
  const BatchIndex begin = plan_.round_begin(round);
  for (BatchIndex batch = begin; batch < plan_.round_end(round); ++batch) {
    const BatchRecord& log = at(batch);
    sums.examples += log.examples;
    sums.loss = add_losses(sums.loss, log.loss);
    sums.active += log.active;
    sums.code_lengths += log.code_length * log.examples;
  }
  sums.first_batch_loss = to_nats(at(begin).loss) / static_cast<double>(at(begin).examples);
  return sums;
}

void Pipeline::forget_before(BatchIndex batch) {
  log_.erase(log_.begin(), log_.lower_bound(batch));
}

Positives Pipeline::positives_in(BatchIndex batch, const std::vector<LeaseRef>& shards) const {
  const Positives& all = at(batch).positives;
  std::vector<std::uint8_t> is_wanted(map_.output_shards());
  for (const LeaseRef& lease : shards) is_wanted[raw(lease.shard)] = 1;
  Positives some;
  some.offsets.reserve(all.offsets.size());
  some.offsets.push_back(0);
  for (std::size_t example = 0; example + 1 < all.offsets.size(); ++example) {
    for (std::uint32_t i = all.offsets[example]; i < all.offsets[example + 1]; ++i) {
      if (is_wanted[raw(map_.shard_of_neuron(all.neurons[i]))] != 0) {
        some.neurons.push_back(all.neurons[i]);
      }
    }
    some.offsets.push_back(static_cast<std::uint32_t>(some.neurons.size()));
  }
  return some;
}

}  // namespace gleaner
