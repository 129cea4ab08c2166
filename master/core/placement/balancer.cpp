#include "master/core/placement/balancer.hpp"

#include <algorithm>
#include <utility>

namespace gleaner {
namespace {

double speed_of(const Holder& holder) {
  return std::max(holder.speed, 1e-9);
}

}  // namespace

std::vector<std::uint32_t> fair_shares(std::span<const Holder> holders, std::uint32_t shards) {
  std::vector<std::uint32_t> shares(holders.size());
  double total = 0;
  for (const Holder& holder : holders) total += holder.capacity > 0 ? speed_of(holder) : 0;
  std::uint32_t given = 0;
  // The best division gives everybody its proportional part, rounded down, at least.
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].capacity == 0) continue;
    const double exact = shards * speed_of(holders[i]) / total;
    shares[i] =
        std::min({static_cast<std::uint32_t>(exact), holders[i].capacity, holders[i].limit});
    given += shares[i];
  }
  // Give each remaining shard to the volunteer that would finish it first. Exceed limits only when
  // all volunteers have reached theirs.
  for (const bool is_limited : {true, false}) {
    for (; given < shards; ++given) {
      std::optional<std::size_t> first;
      double soonest = 0;
      for (std::size_t i = 0; i < holders.size(); ++i) {
        const double done = (shares[i] + 1) / speed_of(holders[i]);
        const bool is_full =
            shares[i] >= holders[i].capacity || (is_limited && shares[i] >= holders[i].limit);
        if (is_full || (first && done >= soonest)) continue;
        first = i;
        soonest = done;
      }
      if (!first) break;
      ++shares[*first];
    }
  }
  return shares;
}

std::optional<std::size_t> next_receiver(std::span<const Holder> holders, std::uint32_t shards) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  std::optional<std::size_t> best;
  std::pair<double, std::int64_t> best_lack;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].shards >= holders[i].capacity) continue;
    const std::int64_t lacking = std::int64_t{shares[i]} - std::int64_t{holders[i].shards};
    const std::pair lack(static_cast<double>(lacking) / std::max(shares[i], 1u), lacking);
    if (!best || lack > best_lack) {
      best = i;
      best_lack = lack;
    }
  }
  return best;
}

double gain_of_fair_shares(std::span<const Holder> holders, std::uint32_t shards) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  double slowest = 0;
  double slowest_when_fair = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const double speed = speed_of(holders[i]);
    slowest = std::max(slowest, holders[i].shards / speed);
    slowest_when_fair = std::max(slowest_when_fair, shares[i] / speed);
  }
  return slowest > slowest_when_fair ? 1 - slowest_when_fair / slowest : 0;
}

bool is_beyond_limits(std::span<const Holder> holders, std::uint32_t shards) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].shards > std::max(holders[i].limit, shares[i])) return true;
  }
  return false;
}

bool is_unbalanced(std::span<const Holder> holders, std::uint32_t shards, double hysteresis) {
  if (is_beyond_limits(holders, shards)) return true;
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].shards == 0 && shares[i] > 0) return true;  // a newcomer
  }
  return gain_of_fair_shares(holders, shards) > 1 - 1 / (1 + hysteresis);
}

std::vector<Move> plan_moves(std::span<const Holder> holders, std::uint32_t shards) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  std::vector<Move> moves;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].shards > shares[i]) {
      moves.push_back({holders[i].session, holders[i].shards - shares[i]});
    }
  }
  return moves;
}

}  // namespace gleaner
