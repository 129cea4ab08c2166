// Keeps copies beside a run's store while it trains: backups, the best checkpoint, and checkpoints
// to which the run can go back while strangers' work may go unaudited. A failure is a warning, and
// training goes on.
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

// Makes backups of the store beside the training. The storage thread freezes a checkpoint quickly;
// the keeper's own thread copies it. A failure is a warning, and training goes on.
class BackupKeeper {
 public:
  // `tell` is called on the caller's thread of folded() and finish(), and on the keeper's own.
  BackupKeeper(MasterConfig::Backup config, std::function<void(RunEvent)> tell, Instant now);
  // Gives up a copy under way.
  ~BackupKeeper();
  BackupKeeper(const BackupKeeper&) = delete;
  BackupKeeper& operator=(const BackupKeeper&) = delete;

  // The store has a new checkpoint: begins a backup if one is due. Called by the store's thread,
  // which it holds while freezing.
  void folded(RunStore& store, Instant now);

  // Gives up a copy under way, and makes no further one. Any thread.
  void stop() { is_stopping_ = true; }

  // The run is over: waits for a copy under way, and backs up the last checkpoint.
  void finish(RunStore& store);

 private:
  struct Frozen {
    std::string folder;
    double seconds = 0;  // for which the store was busy
  };

  std::optional<Frozen> freeze(RunStore& store);
  void copy(const Frozen& frozen);
  Result<void> copy_to_folder(const std::string& snapshot, BackedUp& made);
  // Runs the owner's command, for instance to copy the folder to another machine.
  void hand_on();
  void warn(const Error& error);

  const MasterConfig::Backup config_;
  std::shared_ptr<HeldFolder> folder_;  // of the backups, once one was due
  const std::function<void(RunEvent)> tell_;
  Instant last_begun_;
  std::atomic<bool> is_copying_{false};
  std::atomic<bool> is_stopping_{false};
  // the last one backed up; owned by the keeper's thread until finish()
  RoundIndex last_checkpoint_ = 0;
  asio::thread_pool thread_{1};
};

class Keeper {
 public:
  // `config`, `store` and its `folder` outlive it. `tell` is called on the store's thread and on a
  // thread of the keeper's own.
  Keeper(const MasterConfig& config, RunStore& store, const HeldFolder& folder,
         std::function<void(RunEvent)> tell);

  // To be called by the store's thread, between two tasks or before the first. The checkpoint is
  // new, or the run begins with it.
  void folded(RoundIndex checkpoint);
  void keep_to_go_back(RoundIndex checkpoint);
  void keep_if_due(RoundIndex checkpoint);  // by evaluation.keep_every
  // An evaluation of the checkpoint is recorded.
  void evaluated();

  // Set when the run makes backups. To be finished and dropped after training.
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
