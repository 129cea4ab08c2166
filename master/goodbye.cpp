#include "master/goodbye.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/limits.hpp"
#include "common/text.hpp"

namespace gleaner {
namespace {

Checked checked_of(const Standing& standing, AuditMode audit, bool is_finished) {
  if (standing.is_trusted || audit == AuditMode::kOff) return Checked::kNone;
  // Audits of work in the open round may be missing.
  return audit == AuditMode::kAll && is_finished ? Checked::kAll : Checked::kSome;
}

// Volunteers that were lost longer ago are not waited for.
constexpr std::chrono::minutes kLately{10};
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

ThanksBook::ThanksBook(std::string run, AuditMode audit, const std::vector<AccountRecord>& accounts)
    : run_(printable(run, kNameBytesMax)), audit_(audit) {
  for (const AccountRecord& account : accounts) earlier_[account.identity] = account;
}

void ThanksBook::note(const Effects& effects) {
  for (const Effect& effect : effects) {
    const auto* const task = std::get_if<StorageTask>(&effect);
    if (task == nullptr) continue;
    if (const auto* fold = std::get_if<FoldTask>(task)) note(fold->accounts);
    if (const auto* record = std::get_if<RecordEvaluationTask>(task)) note(record->accounts);
  }
}

void ThanksBook::note(const std::vector<AccountRecord>& records) {
  for (const AccountRecord& record : records) {
    if (record.is_final) earlier_[record.identity] += record;
  }
}

void ThanksBook::complete(Goodbye& goodbye, const Standing& standing, const KeyPair* key) const {
  if (!goodbye.thanks || key == nullptr || standing.is_local) {
    goodbye.thanks.reset();
    return;
  }
  Thanks thanks = goodbye.thanks->thanks;
  if (const auto earlier = earlier_.find(thanks.volunteer); earlier != earlier_.end()) {
    thanks.seconds += static_cast<std::uint64_t>(seconds_in(earlier->second.here));
    thanks.examples += earlier->second.unit_examples;
  }
  thanks.is_finished = goodbye.code == ErrorCode::kFinished;
  thanks.checked = checked_of(standing, audit_, thanks.is_finished);
  thanks.wall_seconds = static_cast<std::uint64_t>(wall_seconds());
  thanks.run = run_;
  goodbye.thanks = sign(std::move(thanks), *key);
}

void ThanksBook::thank(Goodbye& goodbye, const Standing& standing, const KeyPair* key,
                       const std::vector<AccountRecord>& records) const {
  const auto record = std::ranges::find(records, standing.identity, &AccountRecord::identity);
  if (record == records.end() && !earlier_.contains(standing.identity)) return;
  Thanks& thanks = goodbye.thanks.emplace().thanks;
  thanks.volunteer = standing.identity;
  if (record != records.end()) {
    thanks.seconds = static_cast<std::uint64_t>(seconds_in(record->here));
    thanks.examples = record->unit_examples;
  }
  complete(goodbye, standing, key);
}

Goodbye Farewell::answer(const Message& first) {
  if (const auto* hello = std::get_if<Hello>(&first)) {
    // Later volunteers of one name have a number appended.
    std::erase_if(lost_, [&](const auto& lost) {
      return lost.first == hello->name || lost.first.starts_with(hello->name + " ");
    });
  }
  return {ErrorCode::kFinished, "the run is complete"};
}

void Farewell::wait(asio::io_context& io, Millis most, const bool& is_asked_to_end,
                    Console& console) {
  const Instant begin = monotonic_now();
  std::erase_if(lost_, [&](const auto& lost) { return begin - lost.second > kLately; });
  if (lost_.empty() || most == Millis(0)) return;
  console.log(LogLevel::kInfo,
              fmt::format("the run is complete; the port stays open for at most {} s for {}",
                          most.count() / 1000, counted(lost_.size(), "lost volunteer")));
  while (!lost_.empty() && !is_asked_to_end && monotonic_now() - begin < most) {
    io.run_one_for(kLook);
  }
}

}  // namespace gleaner
