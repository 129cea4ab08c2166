// Sorts the shards of a run without a hidden layer into free ones, idle ones and those that are
// out, by round, so that the first of each kind is found without a look at all shards. Pure state;
// used from the core only.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"

namespace gleaner {

class LeaseIndex {
 public:
  enum class Kind : std::uint8_t {
    kNowhere,  // its rows are on their way to the store
    kFree,     // nobody has it
    kIdle,     // a volunteer has it in memory, and nothing to do on it
    kOut,      // somebody loads it, works on it or gives it back
  };

  struct Entry {
    Kind kind = Kind::kNowhere;
    RoundIndex round = 0;  // of the work that is next, or out
    SessionId holder{};    // of a shard that is idle or out
    Instant since{};       // from when on a shard is out
  };

  using Piece = std::pair<RoundIndex, ShardId>;

  explicit LeaseIndex(std::uint32_t shards) : entries_(shards) {}

  // Replaces what is known of the shard. One that stays out with the same holder on the same round
  // keeps its time.
  void put(ShardId shard, Entry entry);

  // Earliest round first.
  [[nodiscard]] const std::set<Piece>& free() const { return free_; }

  // The volunteer's idle shards, earliest round first.
  [[nodiscard]] const std::set<Piece>& idle_at(SessionId holder) const;

  // Earliest round first, then those that have been out for longest.
  [[nodiscard]] const std::set<std::tuple<RoundIndex, Instant, ShardId>>& out() const {
    return out_;
  }

  // Volunteers with idle shards: by the earliest round of these, those with most of them first. The
  // second member is their number, negative.
  [[nodiscard]] const std::set<std::tuple<RoundIndex, std::int64_t, SessionId>>& rich() const {
    return rich_;
  }

 private:
  void erase(ShardId shard);
  // The volunteer's idle shards have changed.
  void rank(SessionId holder);

  std::vector<Entry> entries_;  // by shard
  std::set<Piece> free_;
  std::map<SessionId, std::set<Piece>> idle_;
  std::set<std::tuple<RoundIndex, Instant, ShardId>> out_;
  std::set<std::tuple<RoundIndex, std::int64_t, SessionId>> rich_;
  std::map<SessionId, std::pair<RoundIndex, std::int64_t>> ranks_;  // as in rich_
};

}  // namespace gleaner
