// Sorts the shards of a run without a hidden layer by kind and round, so that the first free, idle
// or busy shard is found without a look at all shards. Pure state; used from the core only.
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
    RoundIndex round = 0;  // of the next work, or of the work that is out
    SessionId holder{};    // of a shard that is idle or out
    Instant since{};       // when the shard went out
  };

  using Piece = std::pair<RoundIndex, ShardId>;

  explicit LeaseIndex(std::uint32_t shards) : entries_(shards) {}

  // Replaces the entry of the shard. A shard that stays out with the same holder on the same round
  // keeps its time.
  void put(ShardId shard, Entry entry);

  // Earliest round first.
  [[nodiscard]] const std::set<Piece>& free() const { return free_; }

  // The volunteer's idle shards, earliest round first.
  [[nodiscard]] const std::set<Piece>& idle_at(SessionId holder) const;

  // Earliest round first, then longest out first.
  [[nodiscard]] const std::set<std::tuple<RoundIndex, Instant, ShardId>>& out() const {
    return out_;
  }

  // Volunteers with idle shards, by the earliest round of these shards, then by their number,
  // largest first. The second member is the number, negative.
  [[nodiscard]] const std::set<std::tuple<RoundIndex, std::int64_t, SessionId>>& rich() const {
    return rich_;
  }

 private:
  void erase(ShardId shard);
  // Ranks the holder again after its idle shards have changed.
  void rank(SessionId holder);

  std::vector<Entry> entries_;  // by shard
  std::set<Piece> free_;
  std::map<SessionId, std::set<Piece>> idle_;
  std::set<std::tuple<RoundIndex, Instant, ShardId>> out_;
  std::set<std::tuple<RoundIndex, std::int64_t, SessionId>> rich_;
  std::map<SessionId, std::pair<RoundIndex, std::int64_t>> ranks_;  // as in rich_
};

}  // namespace gleaner
