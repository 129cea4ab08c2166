// Keeps things beside a run's store while it trains: backups, the best checkpoint, and those to go
// back to while strangers' work may go unaudited. What cannot be kept is a warning, and training
// goes on.
#pragma once

#include <asio/thread_pool.hpp>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/time.hpp"
#include "master/config/config.hpp"
#include "master/see/run_events.hpp"
#include "master/shell/best_checkpoint.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/keep/backup.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// Makes backups of the store beside the training: the storage thread freezes a checkpoint in a
// moment, a thread of the keeper's own copies it. What goes wrong is a warning, and training goes
// on.
class BackupKeeper {
 public:
  // `tell` is called on the thread that called folded() or finish(), and on the keeper's own.
  BackupKeeper(MasterConfig::Backup config, std::function<void(RunEvent)> tell, Instant now);
  // Gives up a copy that is being made.
  ~BackupKeeper();
  BackupKeeper(const BackupKeeper&) = delete;
  BackupKeeper& operator=(const BackupKeeper&) = delete;

  // A checkpoint is new in the store: begins a backup of it if one is due. Called by the thread
  // that uses the store, which it keeps for as long as freezing takes.
  void folded(RunStore& store, Instant now);

  // Gives up the copy that is being made, and makes no other. From any thread.
  void stop() { is_stopping_ = true; }

  // The run is over: waits for the copy that is being made, and backs up the last checkpoint.
  void finish(RunStore& store);

 private:
  struct Frozen {
    std::string folder;
    double seconds = 0;  // that the store was busy with it
  };

  std::optional<Frozen> freeze(RunStore& store);
  void copy(const Frozen& frozen);
  Result<void> copy_to_folder(const std::string& snapshot, BackedUp& made);
  void warn(const Error& error);

  const MasterConfig::Backup config_;
  std::shared_ptr<HeldFolder> folder_;  // of the backups, once there was one to make
  const std::function<void(RunEvent)> tell_;
  Instant last_begun_;
  std::atomic<bool> is_copying_{false};
  std::atomic<bool> is_stopping_{false};
  RoundIndex last_checkpoint_ = 0;  // backed up; the keeper's thread's until finish()
  asio::thread_pool thread_{1};
};

class Keeper {
 public:
  // `config`, `store` and its `folder` outlive it. `tell` is called on the thread of the store, and
  // on one of the keeper's own.
  Keeper(const MasterConfig& config, RunStore& store, const HeldFolder& folder,
         std::function<void(RunEvent)> tell);

  // By the thread that uses the store, between two tasks, or before there is one. The checkpoint is
  // new, or the one to begin with:
  void folded(RoundIndex checkpoint);
  void keep_to_go_back(RoundIndex checkpoint);
  // An evaluation of the checkpoint is on record.
  void evaluated();

  // Where the run makes any. After training, to be finished and dropped.
  std::optional<BackupKeeper>& backups() { return backups_; }

 private:
  void warn(std::string text);

  const MasterConfig& config_;
  RunStore& store_;
  const HeldFolder& folder_;
  BestCheckpoint best_;
  const std::function<void(RunEvent)> tell_;
  const bool may_miss_lies_;  // not all work of strangers is audited
  bool has_told_of_best_ = false;
  std::optional<BackupKeeper> backups_;
};

}  // namespace gleaner
