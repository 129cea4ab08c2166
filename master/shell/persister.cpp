#include "master/shell/persister.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "common/result.hpp"

namespace gleaner {
namespace {

// A step of a fold takes a few milliseconds, another task about one. The fold gets at least a
// quarter of the time.
constexpr std::size_t kInBetweenMax = 8;

bool may_go_between(const StorageTask& task) {
  return std::holds_alternative<StageTask>(task) || std::holds_alternative<SettleTask>(task) ||
         std::holds_alternative<ReadChunkTask>(task);
}

Event failure(const Error& error) {
  if (error.code == ErrorCode::kDiskFull) return StoreFull{error};
  return TaskFailed{error};
}

}  // namespace

std::shared_ptr<const StorageTask> StorageQueue::next() {
  GLEANER_CHECK(!tasks_.empty());
  if (!is_chosen_) {
    const bool has_other = tasks_.size() > 1 && may_go_between(*tasks_[1]);
    const bool goes_between = has_begun_ && has_other && in_between_ < kInBetweenMax;
    chosen_ = goes_between ? 1 : 0;
    in_between_ = goes_between ? in_between_ + 1 : 0;
    is_chosen_ = true;
  }
  return tasks_[chosen_];
}

void StorageQueue::done() {
  GLEANER_CHECK(is_chosen_);
  tasks_.erase(std::next(tasks_.begin(), static_cast<std::ptrdiff_t>(chosen_)));
  if (chosen_ == 0) has_begun_ = false;
  is_chosen_ = false;
}

void StorageQueue::stepped() {
  GLEANER_CHECK(is_chosen_ && chosen_ == 0);
  has_begun_ = true;
  is_chosen_ = false;
}

Persister::Persister(RunStore& store, std::int64_t (*wall_clock)(),
                     std::function<void(RoundIndex)> on_fold,
                     std::function<void(RoundIndex)> on_evaluation)
    : store_(store),
      wall_clock_(wall_clock),
      on_fold_(std::move(on_fold)),
      on_evaluation_(std::move(on_evaluation)) {}

std::optional<Event> Persister::run(const StorageTask& task) {
  return std::visit([this](const auto& t) { return run_task(t); }, task);
}

std::optional<Event> Persister::run_task(const StageTask& task) {
  if (task.part == 0) {
    if (auto dropped = store_.drop_staged(task.round, task.shard); !dropped) {
      return failure(dropped.error());
    }
  }
  Staged done{task.session, task.shard, task.round, task.part, task.parts, task.lease, {}};
  if (task.checks_rows) {
    const Result<bool> fits = store_.has_rows(task.shard, task.update->rows);
    if (!fits) return failure(fits.error());
    if (!*fits) {
      done.refusal = Error{ErrorCode::kFault,
                           fmt::format("the commit of shard {} for round {} changes rows that the "
                                       "shard does not have",
                                       raw(task.shard), task.round)};
      return done;
    }
  }
  auto staged = store_.stage(task.round, task.shard, task.part, task.parts, *task.update);
  if (!staged) return failure(staged.error());
  return done;
}

Result<bool> Persister::step_fold(const FoldTask& task, std::int64_t wall_seconds) {
  if (!is_folding_) {
    RoundRecord record = task.record;
    record.wall_seconds = wall_seconds;
    auto begun = store_.begin_fold(task.round, record, task.receipts ? *task.receipts : Receipts());
    if (!begun) return begun.error();
  }
  const Result<bool> folded = store_.step_fold();
  is_folding_ = folded && !*folded;
  return folded;
}

std::optional<Event> Persister::run_task(const FoldTask& task) {
  const std::int64_t wall_seconds = wall_clock_();
  // The round was folded when room ran out before the accounts were written.
  if (store_.checkpoint() <= task.round) {
    const Result<bool> folded = step_fold(task, wall_seconds);
    if (!folded) return failure(folded.error());
    if (!*folded) return std::nullopt;
  }

  if (auto added = add_to_accounts(task.accounts, wall_seconds); !added) {
    return failure(added.error());
  }
  auto digests = store_.shard_digests();
  if (!digests) return failure(digests.error());
  if (on_fold_) on_fold_(task.round + 1);
  return Folded{task.round, std::move(*digests)};
}

Result<void> Persister::add_to_accounts(const std::vector<AccountRecord>& records,
                                        std::int64_t wall_seconds) {
  std::vector<AccountRecord> accounts;
  for (const AccountRecord& now : records) {
    auto earlier = earlier_.find(now.identity);
    if (earlier == earlier_.end()) {
      auto stored = store_.account(now.identity);
      if (!stored) return stored.error();
      // Units that were out ended with the process that had sent them. An account of an older
      // program may have fewer units issued than answered.
      const std::uint64_t answered = stored->units + stored->units_refused;
      stored->units_issued = std::max(stored->units_issued, answered + stored->units_expired);
      stored->units_expired = stored->units_issued - answered;
      earlier = earlier_.emplace(now.identity, *stored).first;
    }
    AccountRecord account = earlier->second;
    account.name = now.name;
    account += now;
    account.last_seen_wall_seconds = wall_seconds;
    accounts.push_back(account);
  }
  if (auto put = store_.put_accounts(accounts); !put) return put;
  for (const AccountRecord& now : records) {
    if (now.is_final) earlier_.erase(now.identity);
  }
  return {};
}

std::optional<Event> Persister::run_task(const ReadChunkTask& task) {
  auto rows = store_.read_rows(task.lease.shard, task.row_begin, task.row_end, task.base_round);
  if (!rows) return failure(rows.error());
  return ChunkRead{task.session, task.lease, task.chunk, std::move(*rows)};
}

std::optional<Event> Persister::run_task(const SettleTask& task) {
  if (auto settled = store_.settle(task.settled); !settled) return failure(settled.error());
  return Settled{};
}

std::optional<Event> Persister::run_task(const RecordEvaluationTask& task) {
  const auto stored = store_.history_at(store_.checkpoint());
  if (!stored) return failure(stored.error());
  RoundRecord record = stored->value_or(RoundRecord());
  record.checkpoint = store_.checkpoint();
  record.add(task.evaluation);
  if (auto put = store_.put_history(record); !put) return failure(put.error());
  if (auto added = add_to_accounts(task.accounts, wall_clock_()); !added) {
    return failure(added.error());
  }
  if (on_evaluation_) on_evaluation_(record.checkpoint);
  return HistoryRecorded{};
}

}  // namespace gleaner
