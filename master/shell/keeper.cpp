#include "master/shell/keeper.hpp"

#include <fmt/format.h>

#include <asio/post.hpp>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/os/process.hpp"
#include "master/shell/way_back.hpp"
#include "storage/keep/kept_checkpoints.hpp"

namespace gleaner {
namespace {

double seconds_since(Instant start) {
  return seconds_in(monotonic_now() - start);
}

}  // namespace

BackupKeeper::BackupKeeper(MasterConfig::Backup config, std::function<void(RunEvent)> tell,
                           Instant now)
    : config_(std::move(config)), tell_(std::move(tell)), last_begun_(now) {}

BackupKeeper::~BackupKeeper() {
  stop();
  thread_.join();
}

void BackupKeeper::folded(RunStore& store, Instant now) {
  if (is_copying_ || now - last_begun_ < std::chrono::minutes(config_.every_min)) return;
  last_begun_ = now;
  const std::optional<Frozen> frozen = freeze(store);
  if (!frozen) return;
  is_copying_ = true;
  asio::post(thread_, [this, frozen = *frozen] {
    copy(frozen);
    is_copying_ = false;
  });
}

void BackupKeeper::finish(RunStore& store) {
  thread_.join();
  if (last_checkpoint_ == store.checkpoint()) return;
  if (const std::optional<Frozen> frozen = freeze(store)) copy(*frozen);
}

std::optional<BackupKeeper::Frozen> BackupKeeper::freeze(RunStore& store) {
  const Instant start = monotonic_now();
  Result<std::string> snapshot = store.snapshot();
  if (snapshot) return Frozen{std::move(*snapshot), seconds_since(start)};
  warn(snapshot.error());
  return std::nullopt;
}

void BackupKeeper::copy(const Frozen& frozen) {
  const Instant start = monotonic_now();
  BackedUp made;
  made.folder = config_.folder;
  made.stall_seconds = frozen.seconds;
  const Result<void> copied = copy_to_folder(frozen.folder, made);
  made.seconds = seconds_since(start);
  // The copy holds on to tables that the store no longer needs.
  std::error_code error;
  std::filesystem::remove_all(frozen.folder, error);
  if (copied) {
    last_checkpoint_ = made.checkpoint;
    tell_(made);
    hand_on();
  } else if (copied.error().code != ErrorCode::kShuttingDown) {
    warn(copied.error());
  }
}

Result<void> BackupKeeper::copy_to_folder(const std::string& snapshot, BackedUp& made) {
  if (!folder_) {
    std::error_code error;  // opening the folder shows it
    std::filesystem::create_directories(config_.folder, error);
    auto held = HeldFolder::open(config_.folder, "the folder of the backups",
                                 "put it back, or start the master again to use another one");
    if (!held) return held.error();
    folder_ = std::move(*held);
  }
  if (auto in_place = folder_->check(); !in_place) return in_place;
  auto folder = BackupFolder::open(folder_->reach(), BackupAccess::kWrite);
  if (!folder) return folder_->named(folder.error());
  const Result<Backup> backup = (*folder)->add(snapshot, is_stopping_);
  if (!backup) return folder_->named(backup.error());
  made.backup = backup->number;
  made.checkpoint = backup->checkpoint;
  made.bytes = backup->bytes;
  if (auto removed = (*folder)->keep_last(config_.keep); !removed) {
    return folder_->named(removed.error());
  }
  made.kept = static_cast<std::uint32_t>((*folder)->list().size());
  return {};
}

void BackupKeeper::warn(const Error& error) {
  tell_(LogLine{
      LogLevel::kWarning,
      fmt::format("no backup was made: {}; mend that: training goes on, and the next backup "
                  "is tried when it is due",
                  error.message),
      kBackupFailed});
}

void BackupKeeper::hand_on() {
  if (config_.command.empty()) return;
  // The folder is the command's first argument.
  if (os::run_program({"sh", "-c", config_.command, "sh", config_.folder})) return;
  tell_(LogLine{LogLevel::kWarning,
                "the backup is made, but --backup-command failed: mend it; training goes on, and "
                "it is run again after the next backup",
                kBackupFailed});
}

Keeper::Keeper(const MasterConfig& config, RunStore& store, const HeldFolder& folder,
               std::function<void(RunEvent)> tell)
    : config_(config),
      store_(store),
      folder_(folder),
      best_(folder, store),
      tell_(std::move(tell)),
      may_miss_lies_(config.core.audit == AuditMode::kAdaptive && !config.network.listen.empty()) {
  if (!config.backup.folder.empty()) backups_.emplace(config.backup, tell_, monotonic_now());
}

void Keeper::folded(RoundIndex checkpoint) {
  if (backups_) backups_->folded(store_, monotonic_now());
  keep_to_go_back(checkpoint);
  keep_if_due(checkpoint);
}

void Keeper::evaluated() {
  keep_if_due(store_.checkpoint());  // again, with the figures
  if (!config_.evaluation.keep_best) return;
  const auto kept = best_.keep_if_best();
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

void Keeper::keep_if_due(RoundIndex checkpoint) {
  const std::uint32_t every = config_.evaluation.keep_every;
  if (every == 0 || checkpoint % every != 0) return;
  Result<void> kept = folder_.check();
  const std::string path = kept_path(folder_.path(), fmt::format("round-{}", checkpoint));
  if (kept) kept = link_store(folder_.reach(), path);
  if (kept) return;
  warn(fmt::format("checkpoint {} is not kept as {}: {}; once that is mended, later ones are kept",
                   checkpoint, path, folder_.named(kept.error()).message));
}

void Keeper::warn(std::string text) {
  tell_(LogLine{LogLevel::kWarning, std::move(text)});
}

}  // namespace gleaner
