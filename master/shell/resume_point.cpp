#include "master/shell/resume_point.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "common/model/run_plan.hpp"

namespace gleaner {
namespace {

// More leases than one process ever grants.
constexpr std::uint64_t kLeaseEpochs = std::uint64_t{1} << 32;

bool is_evaluated(std::span<const RoundRecord> history, RoundIndex checkpoint) {
  return std::ranges::any_of(history, [checkpoint](const RoundRecord& record) {
    return record.checkpoint == checkpoint && record.evaluated > 0;
  });
}

// Settles staged commits of a run without a hidden layer.
Result<std::vector<SettledRound>> keep_settled(RunStore& run,
                                               std::optional<std::uint32_t> evaluate_every_epochs,
                                               const std::function<void(const Error&)>& on_damage) {
  const RunPlan plan(run.identity().model);
  const auto is_to_be_evaluated = [&](RoundIndex checkpoint) {
    return evaluate_every_epochs && plan.evaluates_at(checkpoint, *evaluate_every_epochs);
  };
  // An evaluation needs the shards as of the checkpoint. It has become due since they went on,
  // because the test set or the settings have changed.
  const RoundIndex checkpoint = run.checkpoint();
  const auto record = run.history_at(checkpoint);
  if (!record) return record.error();
  const bool has_figures = *record && (*record)->evaluated > 0;
  if (is_to_be_evaluated(checkpoint) && !has_figures) {
    if (auto discarded = run.discard_staged(); !discarded) return discarded.error();
    return std::vector<SettledRound>();
  }
  return run.keep_settled(is_to_be_evaluated, on_damage);
}

}  // namespace

LearningSoFar learning_so_far(std::span<const RoundRecord> history, RoundIndex checkpoint) {
  LearningSoFar learning;
  for (const RoundRecord& record : history) {
    if (record.checkpoint > checkpoint) break;
    learning.add_round(record.loss, record.code_length);
    if (record.evaluated > 0) learning.add_evaluation(record.checkpoint, record.precision.at_1());
  }
  return learning;
}

Result<std::vector<SettledRound>> settle_staged(
    RunStore& run, std::optional<std::uint32_t> evaluate_every_epochs,
    const std::function<void(RoundIndex)>& on_fold,
    const std::function<void(const Error&)>& on_damage) {
  // A damaged part prevents a fold; the attempt to keep its commit finds it again.
  std::set<std::string> told;
  const auto tell = [&](const Error& error) {
    if (told.insert(error.message).second) on_damage(error);
  };
  Result<bool> is_open = run.resume_fold();
  if (is_open && *is_open) on_fold(run.checkpoint());
  while (is_open && *is_open) {
    const Result<bool> folded = run.step_fold();
    is_open = folded ? Result<bool>(!*folded) : folded;
  }
  if (!is_open && is_open.error().code != ErrorCode::kCorrupt) return is_open.error();
  if (!is_open) tell(is_open.error());
  if (is_wide(run.identity().model)) return keep_settled(run, evaluate_every_epochs, tell);
  if (auto discarded = run.discard_staged(); !discarded) return discarded.error();
  return std::vector<SettledRound>();
}

Result<ResumePoint> read_resume_point(RunStore& run, std::vector<SettledRound> settled) {
  ResumePoint resume;
  resume.settled = std::move(settled);
  resume.checkpoint = run.checkpoint();
  resume.rate_cuts = run.rate_cuts();
  const auto history = run.history();
  if (!history) return history.error();
  resume.learning = learning_so_far(*history, resume.checkpoint);
  resume.is_evaluated = is_evaluated(*history, resume.checkpoint);
  for (const RoundRecord& record : *history) {
    if (record.checkpoint > resume.checkpoint) break;
    if (record.evaluated > 0) resume.last_precision = record.precision;
  }
  const auto epoch = run.reserve_lease_epochs(kLeaseEpochs);
  if (!epoch) return epoch.error();
  resume.first_epoch = *epoch;
  auto digests = run.shard_digests();
  if (!digests) return digests.error();
  resume.digests = std::move(*digests);
  const auto accounts = run.accounts();
  if (!accounts) return accounts.error();
  for (const AccountRecord& account : *accounts) {
    if (account.commits > 0) resume.proven.insert(account.identity);
    if (account.units > 0) resume.trained.insert(account.identity);
  }
  return resume;
}

}  // namespace gleaner
