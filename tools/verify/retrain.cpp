#include "tools/verify/retrain.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "common/model/schedule.hpp"
#include "master/tasks/worker.hpp"
#include "schema/gradient.hpp"
#include "volunteer/train/output/shard_trainer.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kRowsPerRead = 4096;

class Retraining {
 public:
  Retraining(RunStore& run, const PackedDataset& train, const std::vector<BatchIndex>& rate_cuts,
             ThreadPool& pool)
      : run_(run),
        model_(run.identity().model),
        plan_(model_, rate_cuts),
        schedule_(plan_, run.checkpoint()),
        map_(model_),
        worker_(model_, train, nullptr, count_labels(train), pool, /*lends_input=*/false),
        output_(model_, pool) {}

  Result<void> load();
  // Makes those cuts that the run does not have before `round`.
  Result<void> cut_rates(const std::vector<BatchIndex>& rate_cuts, RoundIndex round);
  Result<void> train_round(RoundIndex round, const std::function<void()>& on_batch);

 private:
  Result<void> load_shard(ShardId shard);
  Result<void> forward(BatchIndex batch);
  // The output shards' part of the oldest batch under way, then the input layer's.
  Result<void> backward(BatchIndex batch);
  Result<void> commit(RoundIndex round);

  Result<void> stage(RoundIndex round, ShardId shard, std::uint32_t part, std::uint32_t parts,
                     const SparseUpdate& update) {
    return run_.stage(round, shard, part, parts, update);
  }

  RunStore& run_;
  const ModelConfig model_;
  const RunPlan plan_;
  Schedule schedule_;
  const ShardMap map_;
  Worker worker_;
  ShardTrainer output_;
  std::vector<LeaseRef> leases_;
  std::deque<ForwardDone> under_way_;
};

Result<void> Retraining::load_shard(ShardId shard) {
  const std::uint32_t rows = map_.row_count(shard);
  LeaseGrant grant;
  grant.lease = {shard, LeaseEpoch{1}};
  grant.base_round = run_.checkpoint();
  grant.next_batch = plan_.round_begin(grant.base_round);
  grant.chunks = grant.base_chunks = (rows + kRowsPerRead - 1) / kRowsPerRead;
  grant.label_counts = run_.label_counts(shard);
  if (auto begun = output_.begin_load(grant); !begun) return begun;
  for (std::uint32_t chunk = 0; chunk < grant.chunks; ++chunk) {
    const std::uint32_t begin = chunk * kRowsPerRead;
    auto stored =
        run_.read_rows(shard, begin, std::min(begin + kRowsPerRead, rows), run_.checkpoint());
    if (!stored) return stored.error();
    if (auto added = output_.load_chunk({grant.lease, chunk, std::move(*stored)}); !added) {
      return added;
    }
  }
  const auto ready = output_.finish_load(grant.lease);
  if (!ready) return ready.error();
  leases_.push_back(grant.lease);
  return {};
}

Result<void> Retraining::load() {
  if (auto loaded = worker_.load(run_); !loaded) return loaded;
  for (std::uint32_t s = 0; s < map_.output_shards(); ++s) {
    if (auto loaded = load_shard(ShardId{s}); !loaded) return loaded;
  }
  return {};
}

Result<void> Retraining::cut_rates(const std::vector<BatchIndex>& rate_cuts, RoundIndex round) {
  while (run_.rate_cuts().size() < rate_cuts.size() &&
         rate_cuts[run_.rate_cuts().size()] <= plan_.round_begin(round)) {
    if (auto cut = run_.cut_rates(); !cut) return cut;
  }
  return {};
}

Result<void> Retraining::forward(BatchIndex batch) {
  Event done = worker_.run(ForwardTask{batch});
  if (const auto* failed = std::get_if<TaskFailed>(&done)) return failed->error;
  under_way_.push_back(std::get<ForwardDone>(std::move(done)));
  return {};
}

Result<void> Retraining::backward(BatchIndex batch) {
  ForwardDone done = std::move(under_way_.front());
  under_way_.pop_front();
  TrainUnit unit;
  unit.unit = UnitId{batch + 1};
  unit.leases = leases_;
  unit.batches.push_back(
      {batch, done.packed, std::move(done.positives), plan_.rates(batch).output});
  const auto outcome = output_.train(unit);
  if (!outcome) return outcome.error();
  auto gradient = std::make_shared<std::vector<std::int32_t>>(done.codes->codes.size());
  const Bytes& packed = outcome->result.batches.at(0).gradient;
  if (!packed.empty()) {
    if (auto added = add_gradient(*done.codes, packed, *gradient); !added) return added;
  }
  const Event updated =
      worker_.run(BackwardTask{batch, plan_.rates(batch).input, done.codes, std::move(gradient)});
  if (const auto* failed = std::get_if<TaskFailed>(&updated)) return failed->error;
  for (const ShardCommit& c : outcome->commits) {
    if (auto staged = stage(c.round, c.lease.shard, c.part, c.parts, c.update); !staged) {
      return staged;
    }
  }
  return {};
}

Result<void> Retraining::commit(RoundIndex round) {
  Event committed = worker_.run(CommitInputTask{round});
  if (const auto* failed = std::get_if<TaskFailed>(&committed)) return failed->error;
  for (const InputCommitted::Part& part : std::get<InputCommitted>(committed).parts) {
    if (auto staged = stage(round, part.shard, part.part, part.parts, *part.update); !staged) {
      return staged;
    }
  }
  HistoryRecord record;
  record.checkpoint = round + 1;
  record.batches = plan_.round_end(round);
  return run_.fold(round, record);
}

Result<void> Retraining::train_round(RoundIndex round, const std::function<void()>& on_batch) {
  while (run_.checkpoint() == round) {
    const Schedule::Step step = schedule_.next().value();
    Result<void> done;
    if (step.kind == Schedule::Kind::kForward) {
      done = forward(step.index);
    } else if (step.kind == Schedule::Kind::kBackward) {
      done = backward(step.index);
      on_batch();
    } else {
      done = commit(round);
    }
    if (!done) return done;
    schedule_.advance();
  }
  return {};
}

}  // namespace

Result<void> retrain(RunStore& run, const PackedDataset& train, RoundIndex to,
                     const std::vector<BatchIndex>& rate_cuts, ThreadPool& pool,
                     const std::function<void()>& on_batch) {
  if (auto discarded = run.discard_staged(); !discarded) return discarded;
  Retraining training(run, train, rate_cuts, pool);
  if (auto loaded = training.load(); !loaded) return loaded;
  for (RoundIndex round = run.checkpoint(); round < to; ++round) {
    if (auto cut = training.cut_rates(rate_cuts, round); !cut) return cut;
    if (auto trained = training.train_round(round, on_batch); !trained) return trained;
  }
  return {};
}

}  // namespace gleaner
