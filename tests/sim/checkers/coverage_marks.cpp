// Counts rare branches by what comes out of them, so that a sweep can say which it reached.
#include <algorithm>
#include <map>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

class CoverageMarks : public Checker {
 public:
  using Checker::Checker;

  void master_started(const ResumePoint& resume, const CoreConfig&) override {
    updated_before_.clear();
    if (resume.checkpoint > 0) log_.mark("branch.resumed_from_checkpoint");
    if (resume.checkpoint > 0 && !resume.is_evaluated) log_.mark("branch.resumed_unevaluated");
  }

  void master_gone() override { sessions_open_.clear(); }

  void event(const Event& event) override {
    if (const auto* read = std::get_if<ChunkRead>(&event)) {
      if (!sessions_open_[read->session]) log_.mark("branch.chunk_read_for_nobody");
    }
    if (const auto* opened = std::get_if<SessionOpened>(&event)) {
      sessions_open_[opened->session] = true;
    }
    if (const auto* closed = std::get_if<SessionClosed>(&event)) {
      sessions_open_.erase(closed->session);
      if (closed->reason.starts_with("its message cannot be read")) {
        log_.mark("branch.nonsense_received");
      }
    }
    if (const auto* summed = std::get_if<RelaySummed>(&event)) {
      if (summed->units.size() > 1) log_.mark("relay.sum_of_several");
    }
    if (std::holds_alternative<RelayGone>(event)) log_.mark("relay.gone");
    const auto* received = std::get_if<MessageReceived>(&event);
    if (received == nullptr) return;
    if (!sessions_open_[received->session]) log_.mark("branch.message_of_a_dropped_session");
    if (const auto* part = std::get_if<HandOver>(&received->message)) {
      if (part->parts > 1) log_.mark("branch.hand_over_in_parts");
      if (part->rows.rows.empty()) log_.mark("branch.hand_over_empty");
    }
    if (const auto* commit = std::get_if<ShardCommit>(&received->message)) {
      if (commit->parts > 1) log_.mark("branch.commit_in_parts");
    }
  }

  void effect(const Effect& effect) override {
    if (const auto* close = std::get_if<CloseSession>(&effect)) {
      sessions_open_.erase(close->session);
    }
    if (std::holds_alternative<SplitSum>(effect)) log_.mark("relay.split");
    const auto* done = std::get_if<Done>(&effect);
    if (done != nullptr && done->error.message.starts_with("a relay was lost")) {
      log_.mark("relay.round_trained_again");
    }
    const auto* send = std::get_if<Send>(&effect);
    if (send == nullptr) return;
    if (const auto* unit = std::get_if<TrainUnit>(&send->message)) {
      if (!unit->wants_gradient) log_.mark("branch.replay_of_known_batches");
      if (unit->batches.size() > 1) log_.mark("branch.unit_of_several_batches");
    }
    if (const auto* unit = std::get_if<InputUnit>(&send->message)) mark(*unit);
    if (const auto* grant = std::get_if<LeaseGrant>(&send->message)) {
      if (grant->chunks > grant->base_chunks) log_.mark("branch.loads_a_hand_over");
      if (grant->base_chunks > 0) log_.mark("branch.loads_a_checkpoint");
    }
    if (std::holds_alternative<Revoke>(send->message)) log_.mark("branch.revoked_while_loading");
    if (const auto* refusal = std::get_if<Refusal>(&send->message)) {
      log_.mark("refusal." + std::to_string(static_cast<int>(refusal->code)) +
                (refusal->retry ? ".retry" : ""));
    }
  }

  void stored(const StorageTask& task, const Event&, RunStore& store) override {
    const auto* read = std::get_if<ReadChunkTask>(&task);
    if (read == nullptr) return;
    if (read->base_round > store.checkpoint()) log_.mark("branch.reads_staged_commits");
    if (read->base_round < store.checkpoint()) log_.mark("branch.reads_an_older_checkpoint");
  }

 private:
  void mark(const InputUnit& unit) {
    if (unit.leases.size() > 1) log_.mark("branch.input_unit_of_several_shards");
    if (unit.steps.size() > 1) log_.mark("branch.input_unit_of_several_steps");
    for (const InputStep& step : unit.steps) {
      if (step.kind != InputStep::Kind::kBackward) continue;
      for (const LeaseRef& lease : unit.leases) {
        BatchIndex& before = updated_before_[lease.shard];
        if (step.index < before) log_.mark("branch.input_replay");
        before = std::max(before, step.index + 1);
      }
    }
  }

  std::map<SessionId, bool> sessions_open_;
  std::map<ShardId, BatchIndex> updated_before_;  // the updates that some holder was asked for
};

}  // namespace

std::unique_ptr<Checker> make_coverage_marks(SimLog& log) {
  return std::make_unique<CoverageMarks>(log);
}

}  // namespace gleaner::sim
