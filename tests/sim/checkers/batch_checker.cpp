// No batch is applied twice or skipped: the input layer's tasks come in the plan's one order, from
// the checkpoint on, in every life of the master, and each update is that of the calm run.
#include <fmt/format.h>

#include "common/model/run_plan.hpp"
#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

class BatchChecker : public Checker {
 public:
  BatchChecker(SimLog& log, const ClusterOptions& options)
      : Checker(log),
        plan_(options.model),
        expected_(may_hold_lies(options) ? nullptr : options.expected) {}

  void master_started(const ResumePoint& resume, const CoreConfig&) override {
    next_forward_ = next_backward_ = plan_.round_begin(resume.checkpoint);
    next_commit_ = resume.checkpoint;
    checkpoint_ = resume.checkpoint;
    rate_cuts_ = resume.rate_cuts.size();
  }

  void effect(const Effect& effect) override {
    const auto* task = std::get_if<WorkerTask>(&effect);
    if (task == nullptr) return;
    if (const auto* forward = std::get_if<ForwardTask>(task)) check(*forward);
    if (const auto* backward = std::get_if<BackwardTask>(task)) check(*backward);
    if (const auto* commit = std::get_if<CommitInputTask>(task)) check(*commit);
    if (const auto* encode = std::get_if<EncodeTask>(task)) check(*encode);
  }

  // Only now the gradient is whole.
  void working(const WorkerTask& task) override {
    if (const auto* backward = std::get_if<BackwardTask>(&task)) check_gradient(*backward);
  }

  void state(const MasterCore& core) override {
    checkpoint_ = core.checkpoint();
    const LeaseTable& leases = core.leases();
    if (core.shard_rounds()) return;
    for (std::uint32_t s = 0; s < leases.size(); ++s) {
      const ShardLease& lease = leases.at(ShardId{s});
      if (lease.state != LeaseState::kFree && lease.next_batch > core.pipeline().frontier()) {
        fail(fmt::format("batches: shard {} is ahead of the forward pass", s));
      }
    }
  }

 private:
  // A round that is still open may hold false work; what is folded is the checkpoints' to prove.
  static bool may_hold_lies(const ClusterOptions& options) { return options.has_liars(); }

  void check(const ForwardTask& task) {
    if (task.batch != next_forward_) {
      fail(fmt::format("batches: forward {} where {} is next", task.batch, next_forward_));
    }
    const BatchIndex before = plan_.applied_before(task.batch);
    if (next_backward_ != before) {
      fail(fmt::format("batches: forward {} sees the updates before {}, not before {}", task.batch,
                       next_backward_, before));
    }
    next_forward_ = task.batch + 1;
  }

  // Where volunteers hold the input layer: what they have seen is theirs to check, and the calm
  // run's to prove.
  void check(const EncodeTask& task) {
    if (task.is_held_out) return;
    if (task.begin != next_forward_ || next_backward_ < plan_.applied_before(task.begin)) {
      fail(fmt::format("batches: forward {} where {} is next, updates before {}", task.begin,
                       next_forward_, next_backward_));
    }
    next_forward_ = task.begin + 1;
  }

  void check(const BackwardTask& task) {
    if (task.batch != next_backward_) {
      fail(fmt::format("batches: update {} where {} is next", task.batch, next_backward_));
    }
    next_backward_ = task.batch + 1;
  }

  void check_gradient(const BackwardTask& task) {
    if (expected_ == nullptr || !task.gradient) return;
    const auto& digests = expected_->gradient_digests;
    const auto calm = digests.find({rate_cuts_, task.batch});
    // How far a run goes beyond a round that turns out to have diverged depends on who is how fast.
    const bool has_diverged =
        !digests.empty() && digests.rbegin()->first.first > rate_cuts_ && calm == digests.end();
    if (has_diverged && plan_.round_of(task.batch) > checkpoint_) return;
    if (calm == digests.end() || calm->second != digest_of(*task.gradient)) {
      fail(fmt::format("batches: update {} is not that of the calm run", task.batch));
    }
  }

  void check(const CommitInputTask& task) {
    if (task.round != next_commit_ || next_backward_ != plan_.round_end(task.round)) {
      fail(
          fmt::format("batches: the input layer commits round {} before batch {}, where round {} "
                      "is next",
                      task.round, next_backward_, next_commit_));
    }
    next_commit_ = task.round + 1;
  }

  const RunPlan plan_;
  const Expected* expected_;
  BatchIndex next_forward_ = 0;
  BatchIndex next_backward_ = 0;
  RoundIndex next_commit_ = 0;
  RoundIndex checkpoint_ = 0;
  std::size_t rate_cuts_ = 0;
};

}  // namespace

std::uint64_t digest_of(const std::vector<std::int32_t>& gradient) {
  std::uint64_t digest = gradient.size();
  for (const std::int32_t entry : gradient) {
    digest = mix64(digest ^ static_cast<std::uint32_t>(entry));
  }
  return digest;
}

std::unique_ptr<Checker> make_batch_checker(SimLog& log, const ClusterOptions& options) {
  return std::make_unique<BatchChecker>(log, options);
}

}  // namespace gleaner::sim
