// A commit counts when it is durable: the core calls a shard committed only when the store has the
// whole commit, folds no round without one of each shard, and whatever was durable is in the store
// that the next master opens, whatever the disk lost: staged, or part of the checkpoint. (That
// master may then drop what is staged of an open round: it trains the round again, to the same
// bits. So may one whose round has diverged, or holds false work.)
#include <fmt/format.h>

#include <limits>
#include <set>
#include <utility>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

class CommitChecker : public Checker {
 public:
  using Checker::Checker;

  void store_opened(RunStore& store) override {
    for (const auto& [round, shard] : durable_) {
      if (round >= dropped_from_) continue;
      const auto staged = store.is_staged(round, shard);
      if (!staged || !*staged) {
        fail(fmt::format("commits: round {} of shard {} was durable and is lost", round,
                         raw(shard)));
      }
    }
    durable_.clear();
    dropped_from_ = kNone;
  }

  void master_started(const ResumePoint& resume, const CoreConfig&) override {
    checkpoint_ = resume.checkpoint;
    resumed_ = resume.checkpoint;
  }

  void goes_back(RoundIndex checkpoint) override {
    std::erase_if(durable_,
                  [checkpoint](const auto& commit) { return commit.first >= checkpoint; });
  }

  void stored(const StorageTask& task, const Event& done, RunStore& store) override {
    const auto* stage = std::get_if<StageTask>(&task);
    if (stage == nullptr || !std::holds_alternative<Staged>(done)) return;
    if (stage->session == SessionId{}) return;  // the worker's, which waits for no disk
    const auto staged = store.is_staged(stage->round, stage->shard);
    // The last part is the one that waits for the disk.
    if (staged && *staged && stage->part + 1 == stage->parts) {
      durable_.insert({stage->round, stage->shard});
    }
  }

  void effect(const Effect& effect) override {
    const auto* done = std::get_if<Done>(&effect);
    if (done != nullptr &&
        (done->outcome == Outcome::kDiverged || done->outcome == Outcome::kFalsified)) {
      dropped_from_ = checkpoint_;
    }
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
          !durable_.contains({committed - 1, ShardId{s}})) {
        fail(fmt::format("commits: round {} of shard {} counts before it is durable", committed - 1,
                         s));
      }
    }
  }

 private:
  static constexpr RoundIndex kNone = std::numeric_limits<RoundIndex>::max();

  RoundIndex checkpoint_ = 0;
  RoundIndex resumed_ = 0;  // the checkpoint at which the master started
  RoundIndex dropped_from_ = kNone;
  std::set<std::pair<RoundIndex, ShardId>> durable_;  // since the store was last opened
};

}  // namespace

std::unique_ptr<Checker> make_commit_checker(SimLog& log) {
  return std::make_unique<CommitChecker>(log);
}

}  // namespace gleaner::sim
