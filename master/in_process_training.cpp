#include "master/in_process_training.hpp"

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "common/console/terminal.hpp"
#include "common/counter_random.hpp"
#include "common/model/run_plan.hpp"
#include "common/work/quantized_gradient.hpp"
#include "master/shell/worker.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/initial_model.hpp"
#include "volunteer/executor.hpp"

namespace gleaner {
namespace {

class Retraining {
 public:
  Retraining(RunStore& run, const PackedDataset& train, const std::vector<BatchIndex>& rate_cuts,
             ThreadPool& pool)
      : run_(run),
        model_(run.identity().model),
        plan_(model_, rate_cuts),
        schedule_(plan_, run.checkpoint()),
        map_(model_),
        pool_(pool),
        worker_(model_, train, nullptr, count_labels(train), pool, /*lends_input=*/false),
        volunteer_(pool, std::numeric_limits<std::uint64_t>::max(), examples_of(train)) {}

  Result<void> load();
  // Makes those cuts that the run does not have before `round`.
  Result<void> cut_rates(const std::vector<BatchIndex>& rate_cuts, RoundIndex round);
  Result<void> train_round(RoundIndex round, const std::function<void()>& on_batch);

 private:
  static volunteer::ExampleStoreOptions examples_of(const PackedDataset& train) {
    volunteer::ExampleStoreOptions options;
    options.own.train = &train;
    return options;
  }

  Result<void> load_shard(ShardId shard);

  Result<std::vector<Message>> tell(Message message) {
    return volunteer_.execute(volunteer::Work(std::move(message)));
  }

  // Without a hidden layer every shard goes through the round by itself.
  Result<void> train_wide(RoundIndex round, const std::function<void()>& on_batch);
  Result<void> stage(const std::vector<Message>& answers);
  Result<void> fold(RoundIndex round);
  Result<void> forward(BatchIndex batch);
  // The output shards' part of the oldest batch under way, then the input layer's.
  Result<void> backward(BatchIndex batch);
  Result<void> commit(RoundIndex round);

  RunStore& run_;
  const ModelConfig model_;
  const RunPlan plan_;
  Schedule schedule_;
  const ShardMap map_;
  ThreadPool& pool_;
  Worker worker_;
  // It holds all output shards.
  volunteer::Executor volunteer_;
  std::vector<LeaseRef> leases_;
  std::deque<ForwardDone> under_way_;
};

Result<void> Retraining::load_shard(ShardId shard) {
  const std::uint32_t rows = map_.row_count(shard);
  LeaseGrant grant;
  grant.lease = {shard, LeaseEpoch{1}};
  grant.base_round = run_.checkpoint();
  grant.next_batch = plan_.round_begin(grant.base_round);
  grant.chunks = grant.base_chunks = (rows + RunStore::kRowsPerRead - 1) / RunStore::kRowsPerRead;
  grant.label_counts = run_.label_counts(shard);
  if (auto begun = tell(grant); !begun) return begun.error();
  leases_.push_back(grant.lease);
  return run_.visit_rows(shard, [&](std::uint32_t begin, ShardRows stored) -> Result<void> {
    auto added = tell(ShardChunk{grant.lease, begin / RunStore::kRowsPerRead, std::move(stored)});
    if (!added) return added.error();
    return {};
  });
}

Result<void> Retraining::load() {
  if (auto loaded = worker_.load(run_); !loaded) return loaded;
  auto begun = volunteer_.execute(volunteer::Reset{model_, std::nullopt, 0});
  if (!begun) return begun.error();
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
  const auto answers = tell(std::move(unit));
  if (!answers) return answers.error();
  auto gradient = std::make_shared<std::vector<std::int32_t>>(done.codes->codes.size());
  if (auto staged = stage(*answers); !staged) return staged;
  for (const Message& answer : *answers) {
    const auto* result = std::get_if<UnitResult>(&answer);
    if (result == nullptr) continue;
    const Bytes& packed = result->batches.at(0).gradient;
    if (auto added = add_gradient(*done.codes, packed, *gradient); !added) return added;
  }
  const Event updated =
      worker_.run(BackwardTask{batch, plan_.rates(batch).input, done.codes, std::move(gradient)});
  if (const auto* failed = std::get_if<TaskFailed>(&updated)) return failed->error;
  return {};
}

Result<void> Retraining::stage(const std::vector<Message>& answers) {
  for (const Message& answer : answers) {
    const auto* c = std::get_if<ShardCommit>(&answer);
    if (c == nullptr) continue;
    auto staged = run_.stage(c->round, c->lease.shard, c->part, c->parts, c->update);
    if (!staged) return staged;
  }
  return {};
}

Result<void> Retraining::train_wide(RoundIndex round, const std::function<void()>& on_batch) {
  const BatchIndex first = plan_.round_begin(round);
  for (const LeaseRef& lease : leases_) {
    TrainUnit unit;
    unit.leases = {lease};
    unit.batches.push_back({first, {}, {}, plan_.rates(first).output});
    if (auto begun = tell(std::move(unit)); !begun) return begun.error();
  }
  std::vector<volunteer::Executor::Ran> ran;
  const auto take = [&](volunteer::Executor::Ran unit) { ran.push_back(std::move(unit)); };
  pool_.parallel_for(pool_.threads(), [&](std::size_t /*index*/, unsigned /*worker*/) {
    while (volunteer_.run_next(take)) {
    }
  });
  for (const volunteer::Executor::Ran& unit : ran) {
    if (!unit.replies) return unit.replies.error();
    if (auto staged = stage(*unit.replies); !staged) return staged;
  }
  for (BatchIndex batch = first; batch < plan_.round_end(round); ++batch) on_batch();
  return fold(round);
}

Result<void> Retraining::commit(RoundIndex round) {
  Event committed = worker_.run(CommitInputTask{round});
  if (const auto* failed = std::get_if<TaskFailed>(&committed)) return failed->error;
  for (const InputCommitted::Part& part : std::get<InputCommitted>(committed).parts) {
    auto staged = run_.stage(round, part.shard, part.part, part.parts, *part.update);
    if (!staged) return staged;
  }
  return fold(round);
}

Result<void> Retraining::fold(RoundIndex round) {
  RoundRecord record;
  record.checkpoint = round + 1;
  record.batches = plan_.round_end(round);
  return run_.fold(round, record);
}

Result<void> Retraining::train_round(RoundIndex round, const std::function<void()>& on_batch) {
  if (is_wide(model_)) return train_wide(round, on_batch);
  while (run_.checkpoint() == round) {
    const BatchIndex end = plan_.round_end(round);
    const Schedule::Step step = schedule_.next(end).value();
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
    schedule_.advance(end);
  }
  return {};
}

}  // namespace

Result<void> train_in_process(RunStore& run, const PackedDataset& train, RoundIndex to,
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
