#include "master/keep/keeper.hpp"

#include <fmt/format.h>

#include <utility>

#include "master/keep/audit_checkpoints.hpp"
#include "master/tasks/best_checkpoint.hpp"
#include "master/tasks/resume_point.hpp"
#include "storage/kept_checkpoints.hpp"

namespace gleaner {

Keeper::Keeper(const MasterConfig& config, RunStore& store, const HeldFolder& folder,
               std::function<void(RunEvent)> tell)
    : config_(config),
      store_(store),
      folder_(folder),
      tell_(std::move(tell)),
      may_miss_lies_(config.network.audit == AuditMode::kAdaptive &&
                     !config.network.listen.empty()) {
  if (!config.backup.folder.empty()) backups_.emplace(config.backup, tell_, monotonic_now());
}

Result<void> Keeper::settle(Console& console) {
  if (auto undone = undo_work_of_banned(config_.run.store, store_, console); !undone) return undone;
  return settle_staged(
      store_,
      [&](RoundIndex round) {
        console.log(LogLevel::kInfo, fmt::format("round {} was trained when the master ended: its "
                                                 "checkpoint is being written",
                                                 round));
      },
      [&](const Error& error) {
        console.log(LogLevel::kWarning,
                    error.message + ": the round that it belongs to is trained again");
      });
}

Result<void> Keeper::undo_work_of(const std::vector<KeyId>& liars, Console& console) {
  return gleaner::undo_work_of(config_.run.store, store_, liars, console);
}

bool Keeper::holds_unaudited() const {
  return has_kept_to_go_back(config_.run.store);
}

void Keeper::folded(RoundIndex checkpoint) {
  if (backups_) backups_->folded(store_, monotonic_now());
  keep_to_go_back(checkpoint);
}

void Keeper::evaluated() {
  if (!config_.evaluation.keep_best) return;
  const auto kept = keep_if_best(folder_, store_);
  if (kept && *kept && !std::exchange(has_told_of_best_, true)) {
    tell_(LogLine{LogLevel::kInfo,
                  fmt::format("the best checkpoint so far is kept as {}, and each better one takes "
                              "its place",
                              kept_path(config_.run.store, "best"))});
  }
  if (!kept)
    warn(fmt::format(
        "the best checkpoint is not kept: {}; once that is mended, the next best one is",
        folder_.named(kept.error()).message));
}

void Keeper::keep_to_go_back(RoundIndex checkpoint) {
  if (!may_miss_lies_) return;
  const auto kept = gleaner::keep_to_go_back(folder_, checkpoint);
  if (kept) return;
  warn(
      fmt::format("checkpoint {} is not kept, so that the run goes back further if work of a "
                  "stranger proves false: {}; once that is mended, later ones are kept",
                  checkpoint, folder_.named(kept.error()).message));
}

void Keeper::run_is_complete() {
  drop_kept_to_go_back(config_.run.store);
}

std::string Keeper::best(RoundIndex best) {
  return kept_best(config_.run.store, store_, best);
}

void Keeper::warn(std::string text) {
  tell_(LogLine{LogLevel::kWarning, std::move(text)});
}

}  // namespace gleaner
