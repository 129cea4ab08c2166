#include "master/shell/resume_point.hpp"

#include "common/limits.hpp"

namespace gleaner {
namespace {

// More leases than one process ever grants.
constexpr std::uint64_t kLeaseEpochs = std::uint64_t{1} << 32;

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

Result<void> settle_staged(RunStore& run, const std::function<void(RoundIndex)>& on_fold,
                           const std::function<void(const Error&)>& on_damage) {
  Result<bool> is_open = run.resume_fold();
  if (is_open && *is_open) on_fold(run.checkpoint());
  while (is_open && *is_open) {
    const Result<bool> folded = run.step_fold();
    is_open = folded ? Result<bool>(!*folded) : folded;
  }
  if (!is_open && is_open.error().code != ErrorCode::kCorrupt) return is_open.error();
  if (!is_open) on_damage(is_open.error());
  return run.discard_staged();
}

Result<ResumePoint> read_resume_point(RunStore& run) {
  ResumePoint resume;
  resume.checkpoint = run.checkpoint();
  resume.rate_cuts = run.rate_cuts();
  const auto history = run.history();
  if (!history) return history.error();
  resume.learning = learning_so_far(*history, resume.checkpoint);
  for (const RoundRecord& record : *history) {
    if (record.checkpoint > resume.checkpoint) break;
    resume.is_evaluated = record.checkpoint == resume.checkpoint && record.evaluated > 0;
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
  }
  return resume;
}

}  // namespace gleaner
