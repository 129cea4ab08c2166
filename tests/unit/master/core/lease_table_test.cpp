#include "master/core/lease_table.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <unordered_map>

#include "common/counter_random.hpp"

namespace gleaner {
namespace {

constexpr SessionId kAnn{1};
constexpr SessionId kBob{2};
constexpr Instant kNow{};

std::shared_ptr<HandedOver> some_state() {
  return std::make_shared<HandedOver>();
}

}  // namespace

TEST_CASE("lease: every grant has a larger epoch than any before it", "[lease]") {
  LeaseEpochs epochs;
  LeaseTable leases(2, 0, epochs);
  const LeaseRef first = leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 0, kNow);
  const LeaseRef second = leases.grant(ShardId{1}, kAnn, leases.at(ShardId{1}).committed, 0, kNow);
  leases.release(ShardId{0}, kNow);
  const LeaseRef third = leases.grant(ShardId{0}, kBob, leases.at(ShardId{0}).committed, 0, kNow);
  REQUIRE(raw(first.epoch) < raw(second.epoch));
  REQUIRE(raw(second.epoch) < raw(third.epoch));
}

TEST_CASE("lease: only its holder finds it, and only under its epoch", "[lease]") {
  LeaseEpochs epochs;
  LeaseTable leases(2, 0, epochs);
  const LeaseRef lease = leases.grant(ShardId{1}, kAnn, leases.at(ShardId{1}).committed, 0, kNow);
  REQUIRE(leases.find(lease, kAnn) == &leases.at(ShardId{1}));
  REQUIRE(leases.find(lease, kBob) == nullptr);
  REQUIRE(leases.find({ShardId{1}, LeaseEpoch{raw(lease.epoch) + 1}}, kAnn) == nullptr);
  REQUIRE(leases.find({ShardId{0}, lease.epoch}, kAnn) == nullptr);
  REQUIRE(leases.find({ShardId{2}, lease.epoch}, kAnn) == nullptr);  // no such shard
}

TEST_CASE("lease: a lease of before is not found after the same volunteer got the shard again",
          "[lease]") {
  LeaseEpochs epochs;
  LeaseTable leases(1, 0, epochs);
  const LeaseRef before = leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 0, kNow);
  leases.release(ShardId{0}, kNow);
  REQUIRE(leases.find(before, kAnn) == nullptr);
  const LeaseRef now = leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 0, kNow);
  REQUIRE(leases.find(before, kAnn) == nullptr);
  REQUIRE(leases.find(now, kAnn) != nullptr);
}

TEST_CASE("lease: a grant stands on what is committed", "[lease]") {
  LeaseEpochs epochs;
  LeaseTable leases(1, 3, epochs);
  leases.at(ShardId{0}).parts_arrived = 2;
  leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 17, kNow);
  const ShardLease& lease = leases.at(ShardId{0});
  REQUIRE(lease.state == LeaseState::kLoading);
  REQUIRE(lease.base_round == 3);
  REQUIRE(lease.next_commit == 3);
  REQUIRE(lease.next_batch == 17);
  REQUIRE(lease.parts_arrived == 0);
}

TEST_CASE("lease: revoking frees what the holder had, and nothing else", "[lease]") {
  LeaseEpochs epochs;
  LeaseTable leases(4, 0, epochs);
  leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 0, kNow);
  leases.grant(ShardId{1}, kBob, leases.at(ShardId{1}).committed, 0, kNow);
  leases.grant(ShardId{3}, kAnn, leases.at(ShardId{3}).committed, 0, kNow);
  REQUIRE(leases.held_by(kAnn) == std::vector{ShardId{0}, ShardId{3}});
  REQUIRE(leases.revoke_all(kAnn, kNow) == std::vector{ShardId{0}, ShardId{3}});
  REQUIRE(leases.held_by(kAnn).empty());
  REQUIRE(leases.held_by(kBob) == std::vector{ShardId{1}});
  REQUIRE(leases.in_state(LeaseState::kFree) == std::set{ShardId{0}, ShardId{2}, ShardId{3}});
}

TEST_CASE("lease: a revoked shard keeps its hand-over only while that was still being loaded",
          "[lease]") {
  LeaseEpochs epochs;
  LeaseTable leases(1, 0, epochs);
  leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 0, kNow);
  leases.at(ShardId{0}).handed_over = some_state();
  const auto after = [&](LeaseState state) {
    leases.set_state(ShardId{0}, state, kNow);
    leases.revoke_all(kAnn, kNow);
    return leases.at(ShardId{0}).handed_over != nullptr;
  };
  REQUIRE(after(LeaseState::kLoading));
  leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 0, kNow);
  REQUIRE_FALSE(after(LeaseState::kReady));  // trained on since
  leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 0, kNow);
  leases.at(ShardId{0}).handed_over = some_state();
  REQUIRE_FALSE(after(LeaseState::kReleasing));  // had not arrived whole
}

TEST_CASE("lease: a shard given back keeps what was handed over", "[lease]") {
  LeaseEpochs epochs;
  LeaseTable leases(1, 0, epochs);
  leases.grant(ShardId{0}, kAnn, leases.at(ShardId{0}).committed, 0, kNow);
  leases.set_state(ShardId{0}, LeaseState::kReleasing, kNow + Micros(5));
  REQUIRE(leases.at(ShardId{0}).since == kNow + Micros(5));
  leases.at(ShardId{0}).handed_over = some_state();
  leases.release(ShardId{0}, kNow);
  REQUIRE(leases.at(ShardId{0}).state == LeaseState::kFree);
  REQUIRE(leases.at(ShardId{0}).handed_over != nullptr);
}

TEST_CASE("lease: the indexes agree with the leases after any sequence of changes", "[lease]") {
  constexpr std::uint32_t kShards = 40;
  LeaseEpochs epochs;
  LeaseTable leases(kShards, 0, epochs);
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint64_t end) {
    return counter_random(27, Purpose::kTest, ++drawn) % end;
  };
  std::size_t grants = 0;
  std::size_t revoked = 0;
  for (int step = 0; step < 4000; ++step) {
    const ShardId shard{static_cast<std::uint32_t>(below(kShards))};
    const SessionId session{1 + below(5)};
    if (below(20) == 0) {
      revoked += leases.revoke_all(session, kNow).size();
    } else if (leases.at(shard).state == LeaseState::kFree) {
      leases.grant(shard, session, 0, 0, kNow);
      ++grants;
    } else {
      leases.set_state(shard, LeaseState{static_cast<std::uint8_t>(below(4))}, kNow);
    }
    // A scan of every shard must say the same.
    std::unordered_map<SessionId, std::set<ShardId>> holders;
    std::map<LeaseState, std::set<ShardId>> states;
    for (std::uint32_t s = 0; s < kShards; ++s) {
      const ShardLease& lease = leases.at(ShardId{s});
      states[lease.state].insert(ShardId{s});
      if (lease.state != LeaseState::kFree) holders[lease.holder].insert(ShardId{s});
    }
    REQUIRE(leases.holders() == holders);
    for (const LeaseState state :
         {LeaseState::kFree, LeaseState::kLoading, LeaseState::kReady, LeaseState::kReleasing}) {
      REQUIRE(leases.in_state(state) == states[state]);
    }
    REQUIRE(leases.count_held_by(session) == leases.held_by(session).size());
  }
  REQUIRE(grants > 100);
  REQUIRE(revoked > 100);
}

}  // namespace gleaner
