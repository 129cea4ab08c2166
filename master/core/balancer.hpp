// Which volunteer should hold how many shards, by measured speed: shards at a volunteer never
// change a number of the model. Pure functions.
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
  std::uint32_t shards = 0;  // held or being loaded
  std::uint32_t capacity = 0;  // most shards its memory takes
  // It exceeds this number only when no other holder has room.
  std::uint32_t limit = std::numeric_limits<std::uint32_t>::max();
};

struct Move {
  SessionId source{};
  std::uint32_t shards = 0;
};

// Fair shares: shards per holder, so that the slowest holder finishes as early as possible. Within
// capacities, and within limits unless others lack room; ties go to the earlier holder. A holder
// gets none if the others would wait for its one shard. The shares sum to `shards` unless the
// capacities do not suffice.
std::vector<std::uint32_t> fair_shares(std::span<const Holder> holders, std::uint32_t shards);

// Chooses receivers of free shards one by one: the holder that lacks the largest fraction of its
// earlier holder.
class Receivers {
 public:
  // `holders` outlive it. `shards` counts all shards, free or not.
  Receivers(std::span<const Holder> holders, std::uint32_t shards);

  // Gives a shard to a holder other than `without`, and returns the holder's position. Nullopt when
  // none has room.
  std::optional<std::size_t> take(std::optional<SessionId> without = {});

 private:
  // How much a holder lacks: as a fraction of its share, in shards, and its position, negative.
  using Lack = std::tuple<double, std::int64_t, std::int64_t>;

  void enter(std::size_t position);

  std::span<const Holder> holders_;
  std::vector<std::uint32_t> shares_;
  std::vector<std::uint32_t> held_;
  std::set<Lack> lacking_;  // of those with room
};                          // holders with room

// Whether a holder exceeds its limit while others have room.
bool is_beyond_limits(std::span<const Holder> holders, std::uint32_t shards);

// Whether shards should move: a holder exceeds its limit, has none of its fair share, or the
// slowest holder takes longer than with fair shares by the fraction `hysteresis`.
bool is_unbalanced(std::span<const Holder> holders, std::uint32_t shards, double hysteresis);

// The fraction of a batch's time that fair shares would save.
double gain_of_fair_shares(std::span<const Holder> holders, std::uint32_t shards);

// How many shards to take from which holder, so that every holder has its fair share.
std::vector<Move> plan_moves(std::span<const Holder> holders, std::uint32_t shards);

}  // namespace gleaner
