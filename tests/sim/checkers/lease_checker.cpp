// One live lease a shard, and one more where strangers take part or there is no hidden layer, each
// held by a session that is there, and epochs that only grow, over restarts of the master too.
// Counted from the grants, releases and closes that pass, not from the core's tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

struct ByEpoch {
  bool operator()(const LeaseRef& a, const LeaseRef& b) const {
    return std::pair(a.shard, a.epoch) < std::pair(b.shard, b.epoch);
  }
};

class LeaseChecker : public Checker {
 public:
  LeaseChecker(SimLog& log, const ClusterOptions& options)
      : Checker(log), has_second_(options.strangers.are_there || is_wide(options.model)) {}

  void master_gone() override {
    live_.clear();
    active_.clear();
  }

  void event(const Event& event) override {
    if (const auto* closed = std::get_if<SessionClosed>(&event)) end_session(closed->session);
    const auto* received = std::get_if<MessageReceived>(&event);
    if (received == nullptr) return;
    if (std::holds_alternative<Goodbye>(received->message)) end_session(received->session);
    const auto* part = std::get_if<HandOver>(&received->message);
    if (part == nullptr || part->part + 1 != part->parts) return;
    if (const auto lease = live_.find(part->lease); is_of(lease, received->session)) {
      live_.erase(lease);
    }
  }

  void effect(const Effect& effect) override {
    if (const auto* close = std::get_if<CloseSession>(&effect)) end_session(close->session);
    const auto* send = std::get_if<Send>(&effect);
    if (send == nullptr) return;
    if (std::holds_alternative<Welcome>(send->message)) active_.insert(send->session);
    if (const auto* revoke = std::get_if<Revoke>(&send->message)) {
      // A declined offer is revoked under the lease that it was offered with.
      if (const auto lease = live_.find(revoke->lease); is_of(lease, send->session)) {
        live_.erase(lease);
      }
    }
    const auto* grant = std::get_if<LeaseGrant>(&send->message);
    if (grant == nullptr) return;
    const bool is_lent = std::any_of(live_.begin(), live_.end(), [&](const auto& live) {
      return live.first.shard == grant->lease.shard;
    });
    if (is_lent && !has_second_) {
      fail(fmt::format("leases: shard {} is lent a second time", raw(grant->lease.shard)));
    }
    if (raw(grant->lease.epoch) <= last_epoch_) {
      fail(fmt::format("leases: epoch {} of shard {} after epoch {}", raw(grant->lease.epoch),
                       raw(grant->lease.shard), last_epoch_));
    }
    if (!active_.contains(send->session)) {
      fail(fmt::format("leases: shard {} is lent to a session that is not there",
                       raw(grant->lease.shard)));
    }
    last_epoch_ = raw(grant->lease.epoch);
    live_[grant->lease] = send->session;
  }

  void state(const MasterCore& core) override {
    check(core.leases());
    check(core.shadows());
  }

 private:
  using Leases = std::map<LeaseRef, SessionId, ByEpoch>;

  bool is_of(const Leases::const_iterator& lease, SessionId session) const {
    return lease != live_.end() && lease->second == session;
  }

  void check(const LeaseTable& table) {
    for (std::uint32_t s = 0; s < table.size(); ++s) {
      const ShardLease& lease = table.at(ShardId{s});
      if (lease.state == LeaseState::kFree) continue;
      if (!is_of(live_.find({ShardId{s}, lease.epoch}), lease.holder)) {
        fail(
            fmt::format("leases: the core counts shard {} as lent to a session that does not have "
                        "it",
                        s));
      }
    }
  }

  void end_session(SessionId session) {
    active_.erase(session);
    std::erase_if(live_, [&](const auto& entry) { return entry.second == session; });
  }

  const bool has_second_;  // lease of a shard: for audits, and for spares
  std::uint64_t last_epoch_ = 0;
  std::set<SessionId> active_;
  Leases live_;
};

}  // namespace

std::unique_ptr<Checker> make_lease_checker(SimLog& log, const ClusterOptions& options) {
  return std::make_unique<LeaseChecker>(log, options);
}

}  // namespace gleaner::sim
