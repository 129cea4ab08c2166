#include "master/core/balancer.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "common/counter_random.hpp"
#include "tests/property/property_seed.hpp"

namespace gleaner {
namespace {

Holder holder(std::uint64_t session, double speed, std::uint32_t shards = 0,
              std::uint32_t capacity = 1000) {
  return {SessionId{session}, speed, shards, capacity};
}

std::uint32_t sum(const std::vector<std::uint32_t>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0u);
}

std::optional<std::size_t> receiver_of(const std::vector<Holder>& holders, std::uint32_t shards) {
  return Receivers(holders, shards).take();
}

std::vector<Holder> random_holders(Rng& random) {
  std::vector<Holder> holders(1 + random.next_below(9));
  for (std::size_t i = 0; i < holders.size(); ++i) {
    holders[i].session = SessionId{i + 1};
    holders[i].speed = random.chance(1, 8) ? 0 : static_cast<double>(random.next_below(1000)) / 7;
    holders[i].capacity = static_cast<std::uint32_t>(random.next_below(40));
    holders[i].shards = static_cast<std::uint32_t>(random.next_below(holders[i].capacity + 1));
  }
  return holders;
}

}  // namespace

TEST_CASE("balancer: the gain is the part of a batch's time that fair shares save", "[master]") {
  const Holder slow{SessionId{1}, 1, 3, 8};
  const Holder idle{SessionId{2}, 1, 0, 8};
  REQUIRE(gain_of_fair_shares(std::vector<Holder>{slow, idle}, 3) == Approx(1.0 / 3));
  REQUIRE(gain_of_fair_shares(std::vector<Holder>{slow}, 3) == 0);
  REQUIRE(gain_of_fair_shares({}, 3) == 0);
}

TEST_CASE("balancer: shares are proportional to speed", "[balancer]") {
  const std::vector<Holder> holders = {holder(1, 1), holder(2, 2), holder(3, 5)};
  REQUIRE(fair_shares(holders, 16) == std::vector<std::uint32_t>{2, 4, 10});
}

TEST_CASE("balancer: an odd shard goes where it is done first, ties go by position", "[balancer]") {
  REQUIRE(fair_shares(std::vector{holder(1, 1), holder(2, 2)}, 4) ==
          std::vector<std::uint32_t>{1, 3});
  REQUIRE(fair_shares(std::vector{holder(1, 1), holder(2, 1), holder(3, 1)}, 8) ==
          std::vector<std::uint32_t>{3, 3, 2});
}

TEST_CASE("balancer: whoever would keep all others waiting gets no shard", "[balancer]") {
  // An eighth of 16 shards is 0.9 of one, but one shard would take ten units instead of eight.
  REQUIRE(fair_shares(std::vector{holder(1, 1), holder(2, 1), holder(3, 0.1)}, 16) ==
          std::vector<std::uint32_t>{8, 8, 0});
  REQUIRE(fair_shares(std::vector{holder(1, 1), holder(2, 1), holder(3, 0.13)}, 16) ==
          std::vector<std::uint32_t>{8, 7, 1});
}

TEST_CASE("balancer: what a capacity cuts off goes to the others", "[balancer]") {
  const std::vector<Holder> holders = {holder(1, 1), holder(2, 100, 0, 3), holder(3, 1)};
  REQUIRE(fair_shares(holders, 9) == std::vector<std::uint32_t>{3, 3, 3});
}

TEST_CASE("balancer: shards that fit nowhere are left over", "[balancer]") {
  const std::vector<Holder> full = {holder(1, 1, 0, 2), holder(2, 1, 0, 0)};
  REQUIRE(fair_shares(full, 9) == std::vector<std::uint32_t>{2, 0});
  REQUIRE(fair_shares({}, 9).empty());
}

TEST_CASE("balancer: a speed of zero counts as slowest, not as absent", "[balancer]") {
  REQUIRE(fair_shares(std::vector{holder(1, 0), holder(2, 0)}, 4) ==
          std::vector<std::uint32_t>{2, 2});
  REQUIRE(fair_shares(std::vector{holder(1, 0), holder(2, 1)}, 4) ==
          std::vector<std::uint32_t>{0, 4});
}

TEST_CASE("balancer: nobody goes beyond its limit while others have room", "[balancer]") {
  Holder greedy = holder(1, 1e9, 9);
  greedy.limit = 3;
  REQUIRE(fair_shares(std::vector{greedy, holder(2, 1)}, 9) == std::vector<std::uint32_t>{3, 6});
  // There is room for four more: the rest goes beyond the limit.
  const std::vector small{greedy, holder(2, 1, 0, 4)};
  REQUIRE(fair_shares(small, 9) == std::vector<std::uint32_t>{5, 4});
  REQUIRE(is_beyond_limits(small, 9));
  REQUIRE(is_unbalanced(small, 9, 100));
  REQUIRE(plan_moves(small, 9).at(0).shards == 4);
  REQUIRE_FALSE(is_beyond_limits(std::vector{greedy}, 9));
  REQUIRE(fair_shares(std::vector{greedy}, 9) == std::vector<std::uint32_t>{9});
}

TEST_CASE("balancer: the next shard goes to whoever is furthest below its share", "[balancer]") {
  REQUIRE(receiver_of(std::vector{holder(1, 1, 3), holder(2, 1, 1)}, 8) == 1u);
  REQUIRE(receiver_of(std::vector{holder(1, 1, 3), holder(2, 1, 3)}, 8) == 0u);
  // Three of twelve are less than one of one.
  REQUIRE(receiver_of(std::vector{holder(1, 12, 9), holder(2, 1, 0)}, 13) == 1u);
  REQUIRE(receiver_of(std::vector{holder(1, 1, 0, 0), holder(2, 1, 5)}, 8) == 1u);
  REQUIRE_FALSE(receiver_of(std::vector{holder(1, 1, 2, 2)}, 8).has_value());
  REQUIRE_FALSE(Receivers({}, 8).take().has_value());
}

TEST_CASE("balancer: shards go one after the other, and not to whom they must not", "[balancer]") {
  const std::vector two{holder(1, 1, 0, 2), holder(2, 1, 1, 2)};
  Receivers receivers(two, 4);
  REQUIRE(receivers.take(SessionId{1}) == 1u);
  REQUIRE_FALSE(receivers.take(SessionId{1}).has_value());  // the other one is full
  REQUIRE(receivers.take() == 0u);
  REQUIRE(receivers.take() == 0u);
  REQUIRE_FALSE(receivers.take().has_value());
}

TEST_CASE("balancer: what costs less than the hysteresis is left alone", "[balancer]") {
  // Fair is 8 each; the batch waits for whoever holds more.
  REQUIRE_FALSE(is_unbalanced(std::vector{holder(1, 1, 10), holder(2, 1, 6)}, 16, 0.25));
  REQUIRE(is_unbalanced(std::vector{holder(1, 1, 11), holder(2, 1, 5)}, 16, 0.25));
  // A slow holder's one shard too many weighs as much as three of a fast one.
  REQUIRE(is_unbalanced(std::vector{holder(1, 3, 10), holder(2, 1, 6)}, 16, 0.25));
  REQUIRE_FALSE(is_unbalanced(std::vector{holder(1, 3, 12), holder(2, 1, 4)}, 16, 0.0));
}

TEST_CASE("balancer: a newcomer is served although it is within the hysteresis", "[balancer]") {
  const std::vector holders{holder(1, 3, 4), holder(2, 1, 0)};
  REQUIRE(is_unbalanced(holders, 4, 0.9));
  const auto moves = plan_moves(holders, 4);
  REQUIRE(moves.size() == 1);
  REQUIRE(moves[0].source == SessionId{1});
  REQUIRE(moves[0].shards == 1);
}

TEST_CASE("balancer: shares sum to the shards, or fill every capacity", "[balancer][property]") {
  const std::uint64_t seed = property_seed();
  INFO("GLEANER_SEED=" << seed);
  Rng random(seed, Purpose::kTest);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<Holder> holders = random_holders(random);
    const auto shards = static_cast<std::uint32_t>(random.next_below(100));
    std::uint32_t room = 0;
    for (const Holder& h : holders) room += h.capacity;
    const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
    REQUIRE(sum(shares) == std::min(shards, room));
    for (std::size_t k = 0; k < holders.size(); ++k) REQUIRE(shares[k] <= holders[k].capacity);
  }
}

TEST_CASE("balancer: no other division is done sooner", "[balancer][property]") {
  const std::uint64_t seed = property_seed();
  INFO("GLEANER_SEED=" << seed);
  Rng random(seed, Purpose::kTest, 1);
  for (int i = 0; i < 1000; ++i) {
    std::vector<Holder> holders = random_holders(random);
    for (Holder& h : holders) h.speed += 0.5;
    const auto shards = static_cast<std::uint32_t>(random.next_below(100));
    const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
    double last = 0;
    for (std::size_t k = 0; k < holders.size(); ++k) {
      last = std::max(last, shares[k] / holders[k].speed);
    }
    // The last to be done could be relieved of a shard only by somebody who is no sooner with it.
    for (std::size_t k = 0; k < holders.size(); ++k) {
      if (shares[k] == holders[k].capacity) continue;
      REQUIRE((shares[k] + 1) / holders[k].speed >= last * (1 - 1e-9));
    }
  }
}

TEST_CASE("balancer: moves take only what is above a share and settle", "[balancer][property]") {
  const std::uint64_t seed = property_seed();
  INFO("GLEANER_SEED=" << seed);
  Rng random(seed, Purpose::kTest, 2);
  for (int i = 0; i < 1000; ++i) {
    std::vector<Holder> holders = random_holders(random);
    std::uint32_t shards = 0;
    for (const Holder& h : holders) shards += h.shards;
    const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
    std::uint32_t waves = 0;
    for (auto moves = plan_moves(holders, shards); !moves.empty();
         moves = plan_moves(holders, shards)) {
      REQUIRE(++waves <= 1);
      std::uint32_t taken = 0;
      for (const Move& move : moves) {
        const std::size_t k = raw(move.source) - 1;
        REQUIRE(move.shards > 0);
        REQUIRE(holders[k].shards - move.shards >= shares[k]);
        holders[k].shards -= move.shards;
        taken += move.shards;
      }
      // A shard that was taken is lent again as any free shard is.
      for (; taken > 0; --taken) {
        const auto receiver = Receivers(holders, shards).take();
        REQUIRE(receiver.has_value());
        ++holders[*receiver].shards;
        REQUIRE(holders[*receiver].shards <= shares[*receiver]);
      }
      for (std::size_t k = 0; k < holders.size(); ++k) {
        REQUIRE((shares[k] == 0 || holders[k].shards > 0));  // newcomers are served first
      }
    }
  }
}

}  // namespace gleaner
