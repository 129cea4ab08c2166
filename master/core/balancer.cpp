#include "master/core/balancer.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
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
    using Next = std::pair<double, std::size_t>;  // when it would have finished one more
    std::priority_queue<Next, std::vector<Next>, std::greater<>> soonest;
    const auto enter = [&](std::size_t i) {
      const bool is_full =
          shares[i] >= holders[i].capacity || (is_limited && shares[i] >= holders[i].limit);
      if (!is_full) soonest.emplace((shares[i] + 1) / speed_of(holders[i]), i);
    };
    for (std::size_t i = 0; i < holders.size(); ++i) enter(i);
    for (; given < shards && !soonest.empty(); ++given) {
      const std::size_t first = soonest.top().second;
      soonest.pop();
      ++shares[first];
      enter(first);
    }
  }
  return shares;
}

Receivers::Receivers(std::span<const Holder> holders, std::uint32_t shards)
    : holders_(holders), shares_(fair_shares(holders, shards)) {
  for (const Holder& holder : holders) held_.push_back(holder.shards);
  for (std::size_t i = 0; i < holders.size(); ++i) enter(i);
}

void Receivers::enter(std::size_t position) {
  if (held_[position] >= holders_[position].capacity) return;
  const std::int64_t lacking = std::int64_t{shares_[position]} - std::int64_t{held_[position]};
  lacking_.emplace(static_cast<double>(lacking) / std::max(shares_[position], 1u), lacking,
                   -static_cast<std::int64_t>(position));
}

std::optional<std::size_t> Receivers::take(std::optional<SessionId> without) {
  for (auto most = lacking_.rbegin(); most != lacking_.rend(); ++most) {
    const auto position = static_cast<std::size_t>(-std::get<2>(*most));
    if (holders_[position].session == without) continue;
    lacking_.erase(std::next(most).base());
    ++held_[position];
    enter(position);
    return position;
  }
  return std::nullopt;
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
