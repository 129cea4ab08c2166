// Which volunteer should hold how many shards. Pure functions. Placement never changes a number of
// the model, so measured speeds may decide here.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "common/ids.hpp"

namespace gleaner {

struct Holder {
  SessionId session{};
  double speed = 0;          // examples x shards a second, or any common unit; 0 counts as slowest
  std::uint32_t shards = 0;  // held or on the way
  std::uint32_t capacity = 0;  // most shards its memory takes
  // It gets more shards than this only when the others have no room left.
  std::uint32_t limit = std::numeric_limits<std::uint32_t>::max();
};

struct Move {
  SessionId source{};
  std::uint32_t shards = 0;
};

// Fair shares: those with which the slowest holder is done first, within capacity, and within the
// limits where those suffice; ties by position. A holder so slow that one shard would keep all
// others waiting gets none. The shares sum to `shards` unless the capacities do not suffice.
std::vector<std::uint32_t> fair_shares(std::span<const Holder> holders, std::uint32_t shards);

// Who gets the free shards, one after the other: the holder that lacks the largest part of its
// share, so that a newcomer comes first; then the one that lacks most; then the first.
class Receivers {
 public:
  // `holders` outlive it; `shards` are all shards, free or not.
  Receivers(std::span<const Holder> holders, std::uint32_t shards);

  // Gives a shard to the holder at the position that is returned, and not to `without`. Nullopt
  // when none has room.
  std::optional<std::size_t> take(std::optional<SessionId> without = {});

 private:
  // By how much a holder lacks its share: as a part of it, and in shards; then the earlier one.
  using Lack = std::tuple<double, std::int64_t, std::int64_t>;

  void enter(std::size_t position);

  std::span<const Holder> holders_;
  std::vector<std::uint32_t> shares_;
  std::vector<std::uint32_t> held_;
  std::set<Lack> lacking_;  // of those with room
};

// Whether somebody holds more than its limit, and others have room for it.
bool is_beyond_limits(std::span<const Holder> holders, std::uint32_t shards);

// Whether shards should move: somebody is beyond its limit, or the slowest holder takes longer than
// it would with fair shares by more than `hysteresis`, of which 0.25 is a quarter. A batch is done
// when the last is.
bool is_unbalanced(std::span<const Holder> holders, std::uint32_t shards, double hysteresis);

// How much shorter a batch would be with fair shares, as a part of what it takes now: 0 to 1.
double gain_of_fair_shares(std::span<const Holder> holders, std::uint32_t shards);

// How many shards to ask back from whom, so that every holder has its fair share.
std::vector<Move> plan_moves(std::span<const Holder> holders, std::uint32_t shards);

}  // namespace gleaner
