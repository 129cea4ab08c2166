// A checkpoint is there whole or not at all, and never goes away: after every write, and whenever
// the store is opened, its digest is that of the calm run's checkpoint of the same number, and the
// number is at least the last that a fold reported. Where strangers' lies may be folded,
// checkpoints may be undone, and only the number is checked.
#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

class CheckpointChecker : public Checker {
 public:
  CheckpointChecker(SimLog& log, const ClusterOptions& options)
      : Checker(log), expected_(may_fold_lies(options) ? nullptr : options.expected) {}

  void store_opened(RunStore& store) override { check(store); }

  void stored(const StorageTask& task, const Event& done, RunStore& store) override {
    if (std::holds_alternative<TaskFailed>(done)) return;
    if (std::holds_alternative<FoldTask>(task)) check(store);
    if (store.checkpoint() < folded_) {
      fail(fmt::format("checkpoints: {} after {}", store.checkpoint(), folded_));
    }
  }

  void event(const Event& event) override {
    const auto* folded = std::get_if<Folded>(&event);
    if (folded == nullptr) return;
    if (folded->round != folded_) {
      fail(fmt::format("checkpoints: round {} folded where {} is next", folded->round, folded_));
    }
    folded_ = folded->round + 1;
  }

  void master_started(const ResumePoint& resume, const CoreConfig&) override {
    folded_ = resume.checkpoint;
  }

  void goes_back(RoundIndex checkpoint) override { folded_ = checkpoint; }

 private:
  static bool may_fold_lies(const ClusterOptions& options) {
    return options.has_liars() && options.master.audit != AuditMode::kAll;
  }

  void check(RunStore& store) {
    if (store.checkpoint() < folded_) {
      fail(fmt::format("checkpoints: the store is at {}, but {} was folded", store.checkpoint(),
                       folded_));
    }
    const auto digest = store.checkpoint_digest();
    if (!digest) {
      fail("checkpoints: " + digest.error().message);
      return;
    }
    if (expected_ == nullptr) return;
    const auto calm = expected_->digests.find(store.checkpoint());
    if (calm == expected_->digests.end() || calm->second != *digest) {
      fail(fmt::format("checkpoints: {} is not that of the calm run", store.checkpoint()));
    }
  }

  const Expected* expected_;
  RoundIndex folded_ = 0;
};

}  // namespace

std::unique_ptr<Checker> make_checkpoint_checker(SimLog& log, const ClusterOptions& options) {
  return std::make_unique<CheckpointChecker>(log, options);
}

}  // namespace gleaner::sim
