#include "master/core/balancer.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gleaner {
namespace {

// One pass of proportional sharing of `shards` among the holders that are not full yet.
void share_out(std::span<const Holder> holders, std::uint32_t shards,
               std::vector<std::uint32_t>& shares) {
  double total = 0;
  const auto weight = [&](std::size_t i) {
    return shares[i] < holders[i].capacity ? std::max(holders[i].speed, 1e-9) : 0.0;
  };
  for (std::size_t i = 0; i < holders.size(); ++i) total += weight(i);
  if (total <= 0) return;
  std::vector<double> remainder(holders.size());
  std::uint32_t given = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const double exact = shards * weight(i) / total;
    const auto whole =
        std::min<std::uint32_t>(static_cast<std::uint32_t>(exact), holders[i].capacity - shares[i]);
    remainder[i] = weight(i) > 0 ? exact - whole : -1;
    shares[i] += whole;
    given += whole;
  }
  std::vector<std::size_t> order(holders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (const std::size_t i : order) {
    if (given == shards) return;
    if (shares[i] < holders[i].capacity) {
      ++shares[i];
      ++given;
    }
  }
}

}  // namespace

std::vector<std::uint32_t> fair_shares(std::span<const Holder> holders, std::uint32_t shards) {
  std::vector<std::uint32_t> shares(holders.size());
  // Capacities can cut a share; what is left is shared among the others, at most once a holder.
  for (std::size_t pass = 0; pass <= holders.size(); ++pass) {
    const std::uint32_t given = std::accumulate(shares.begin(), shares.end(), 0u);
    if (given == shards) break;
    share_out(holders, shards - given, shares);
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

bool is_unbalanced(std::span<const Holder> holders, std::uint32_t shards, double hysteresis) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  double slowest = 0;
  double slowest_when_fair = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].shards == 0 && shares[i] > 0) return true;  // a newcomer
    const double speed = std::max(holders[i].speed, 1e-9);
    slowest = std::max(slowest, holders[i].shards / speed);
    slowest_when_fair = std::max(slowest_when_fair, shares[i] / speed);
  }
  return slowest > (1 + hysteresis) * slowest_when_fair;
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
