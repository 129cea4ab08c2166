// One live lease a shard, held by a session that is there, and epochs that only grow, over restarts
// of the master too. Counted from the grants, releases and closes that pass, not from the core's
// table.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

class LeaseChecker : public Checker {
 public:
  using Checker::Checker;

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
    const auto lease = live_.find(part->lease.shard);
    if (lease == live_.end()) return;
    if (lease->second.session != received->session || lease->second.lease != part->lease) return;
    live_.erase(lease);
  }

  void effect(const Effect& effect) override {
    if (const auto* close = std::get_if<CloseSession>(&effect)) end_session(close->session);
    const auto* send = std::get_if<Send>(&effect);
    if (send == nullptr) return;
    if (std::holds_alternative<Welcome>(send->message)) active_.insert(send->session);
    if (const auto* revoke = std::get_if<Revoke>(&send->message)) {
      // A declined offer is revoked under the lease that it was offered with.
      const auto lease = live_.find(revoke->lease.shard);
      if (lease != live_.end() && lease->second.session == send->session &&
          lease->second.lease == revoke->lease) {
        live_.erase(lease);
      }
    }
    const auto* grant = std::get_if<LeaseGrant>(&send->message);
    if (grant == nullptr) return;
    if (live_.contains(grant->lease.shard)) {
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
    live_[grant->lease.shard] = {send->session, grant->lease};
  }

  void state(const MasterCore& core) override {
    const LeaseTable& table = core.leases();
    for (std::uint32_t s = 0; s < table.size(); ++s) {
      const ShardLease& lease = table.at(ShardId{s});
      if (lease.state == LeaseState::kFree) continue;
      const auto live = live_.find(ShardId{s});
      if (live == live_.end() || live->second.session != lease.holder ||
          live->second.lease.epoch != lease.epoch) {
        fail(
            fmt::format("leases: the core counts shard {} as lent to a session that does not have "
                        "it",
                        s));
      }
    }
  }

 private:
  struct Live {
    SessionId session{};
    LeaseRef lease;
  };

  void end_session(SessionId session) {
    active_.erase(session);
    std::erase_if(live_, [&](const auto& entry) { return entry.second.session == session; });
  }

  std::uint64_t last_epoch_ = 0;
  std::set<SessionId> active_;
  std::map<ShardId, Live> live_;
};

}  // namespace

std::unique_ptr<Checker> make_lease_checker(SimLog& log) {
  return std::make_unique<LeaseChecker>(log);
}

}  // namespace gleaner::sim
