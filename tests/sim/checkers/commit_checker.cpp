// Acknowledged means durable: an acknowledgement leaves only when the store has the whole commit,
// every commit that becomes whole is acknowledged if its sender still holds the shard, and whatever
// was acknowledged is in the store that the next master opens, whatever the disk lost: staged, or
// part of the checkpoint. (That master may then drop what is staged of an open round: it trains the
// round again, to the same bits. So may one whose round has diverged, or holds false work.) What an
// auditor commits is compared and not stored.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

class CommitChecker : public Checker {
 public:
  using Checker::Checker;

  void store_opened(RunStore& store) override {
    for (const auto& [round, shard] : acknowledged_) {
      const auto staged = store.is_staged(round, shard);
      if (!staged || !*staged) {
        fail(fmt::format("commits: round {} of shard {} was acknowledged and is lost", round,
                         raw(shard)));
      }
    }
    acknowledged_.clear();
  }

  void master_started(const ResumePoint& resume, const CoreConfig&) override {
    checkpoint_ = resume.checkpoint;
  }

  void went_back(RoundIndex checkpoint) override {
    std::erase_if(acknowledged_,
                  [checkpoint](const Commit& commit) { return commit.first >= checkpoint; });
  }

  void master_gone() override {
    durable_.clear();
    told_.clear();
    parts_on_their_way_.clear();
    epochs_.clear();
    sessions_.clear();
    expects_ack_.reset();
  }

  void stored(const StorageTask& task, const Event& done, RunStore& store) override {
    const auto* stage = std::get_if<StageTask>(&task);
    if (stage == nullptr || !std::holds_alternative<Staged>(done)) return;
    if (stage->session == SessionId{}) return;  // the worker's
    const auto staged = store.is_staged(stage->round, stage->shard);
    // The last part is the one that waits for the disk.
    if (staged && *staged && stage->part + 1 == stage->parts) {
      durable_.insert({stage->round, stage->shard});
    }
  }

  void event(const Event& event) override {
    if (const auto* opened = std::get_if<SessionOpened>(&event)) sessions_.insert(opened->session);
    if (const auto* closed = std::get_if<SessionClosed>(&event)) sessions_.erase(closed->session);
    if (const auto* received = std::get_if<MessageReceived>(&event)) {
      if (const auto* commit = std::get_if<ShardCommit>(&received->message)) {
        epochs_[{received->session, {commit->round, commit->lease.shard}}] = commit->lease.epoch;
      }
    }
    const auto* staged = std::get_if<Staged>(&event);
    if (staged == nullptr) return;
    const std::pair commit(staged->round, staged->shard);
    const std::pair key(staged->session, commit);
    if (!durable_.contains(commit) || !sessions_.contains(staged->session)) return;
    if (--parts_on_their_way_[key] == 0 && !told_.contains(key)) expects_ack_ = key;
  }

  void effect(const Effect& effect) override {
    if (const auto* close = std::get_if<CloseSession>(&effect)) sessions_.erase(close->session);
    if (const auto* task = std::get_if<StorageTask>(&effect)) {
      if (const auto* stage = std::get_if<StageTask>(task)) {
        ++parts_on_their_way_[{stage->session, {stage->round, stage->shard}}];
      }
    }
    const auto* done = std::get_if<Done>(&effect);
    if (done != nullptr &&
        (done->outcome == Outcome::kDiverged || done->outcome == Outcome::kFalsified)) {
      std::erase_if(acknowledged_,
                    [this](const Commit& commit) { return commit.first >= checkpoint_; });
    }
    const auto* send = std::get_if<Send>(&effect);
    const auto* ack = send == nullptr ? nullptr : std::get_if<CommitAck>(&send->message);
    if (ack == nullptr || shadows_.contains(ack->lease.epoch)) return;
    const std::pair commit(ack->round, ack->lease.shard);
    if (!durable_.contains(commit)) {
      fail(fmt::format("commits: round {} of shard {} is acknowledged before it is durable",
                       ack->round, raw(ack->lease.shard)));
    }
    told_.insert({send->session, commit});
    if (expects_ack_ && expects_ack_->first == send->session) expects_ack_.reset();
    acknowledged_.insert(commit);
  }

  void state(const MasterCore& core) override {
    for (std::uint32_t s = 0; s < core.shadows().size(); ++s) {
      const ShardLease& shadow = core.shadows().at(ShardId{s});
      if (shadow.state != LeaseState::kFree) shadows_.insert(shadow.epoch);
    }
    const LeaseTable& leases = core.leases();
    if (expects_ack_) {
      const Commit& commit = expects_ack_->second;
      const ShardLease& lease = leases.at(commit.second);
      if (lease.state != LeaseState::kFree && lease.epoch == epochs_[*expects_ack_]) {
        fail(fmt::format("commits: round {} of shard {} is durable and not acknowledged",
                         commit.first, raw(commit.second)));
      }
      expects_ack_.reset();
    }
    checkpoint_ = core.checkpoint();
    for (std::uint32_t s = 0; s < leases.size(); ++s) {
      const ShardLease& lease = leases.at(ShardId{s});
      if (lease.committed < checkpoint_) {
        fail(fmt::format("commits: round {} is folded without shard {}", checkpoint_ - 1, s));
      }
    }
  }

 private:
  using Commit = std::pair<RoundIndex, ShardId>;

  RoundIndex checkpoint_ = 0;
  std::set<SessionId> sessions_;
  std::set<LeaseEpoch> shadows_;
  std::set<Commit> durable_;       // in this life of the master
  std::set<Commit> acknowledged_;  // since the store was last opened
  std::map<std::pair<SessionId, Commit>, std::int64_t> parts_on_their_way_;
  std::map<std::pair<SessionId, Commit>, LeaseEpoch> epochs_;  // under which each was sent
  std::set<std::pair<SessionId, Commit>> told_;                // in this life
  std::optional<std::pair<SessionId, Commit>> expects_ack_;
};

}  // namespace

std::unique_ptr<Checker> make_commit_checker(SimLog& log) {
  return std::make_unique<CommitChecker>(log);
}

}  // namespace gleaner::sim
