// A commit counts when it is stored: the core calls a shard committed only when the store has the
// whole commit, and folds no round without one of each shard.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

class CommitChecker : public Checker {
 public:
  using Checker::Checker;

  void store_opened(RunStore&) override { stored_.clear(); }

  void master_started(const ResumePoint& resume, const CoreConfig&) override {
    checkpoint_ = resume.checkpoint;
    resumed_ = resume.checkpoint;
    for (const SettledRound& settled : resume.settled) {
      stored_.insert({settled.round, settled.shard});
    }
  }

  void goes_back(RoundIndex checkpoint) override {
    std::erase_if(stored_, [checkpoint](const auto& commit) { return commit.first >= checkpoint; });
  }

  void stored(const StorageTask& task, const Event& done, RunStore& store) override {
    const auto* stage = std::get_if<StageTask>(&task);
    if (stage == nullptr || !std::holds_alternative<Staged>(done)) return;
    const auto staged = store.is_staged(stage->round, stage->shard);
    if (staged && *staged) stored_.insert({stage->round, stage->shard});
  }

  void state(const MasterCore& core) override {
    checkpoint_ = core.checkpoint();
    const LeaseTable& leases = core.leases();
    for (std::uint32_t s = 0; s < leases.size(); ++s) {
      const RoundIndex committed = leases.at(ShardId{s}).committed;
      if (committed < checkpoint_) {
        fail(fmt::format("commits: round {} is folded without shard {}", checkpoint_ - 1, s));
      }
      if (committed > resumed_ && committed > checkpoint_ &&
          !stored_.contains({committed - 1, ShardId{s}})) {
        fail(fmt::format("commits: round {} of shard {} counts before it is stored", committed - 1,
                         s));
      }
    }
  }

 private:
  RoundIndex checkpoint_ = 0;
  RoundIndex resumed_ = 0;                           // the checkpoint at which the master started
  std::set<std::pair<RoundIndex, ShardId>> stored_;  // since the store was last opened
};

}  // namespace

std::unique_ptr<Checker> make_commit_checker(SimLog& log) {
  return std::make_unique<CommitChecker>(log);
}

}  // namespace gleaner::sim
