// The leases: which session holds which shard. Pure state; used from the core only.
//
// Invariants
// - A shard has at most one live lease, and a later grant has a larger epoch.
// - The indexes by holder and by state agree with the leases, so that a question about one holder
//   or state need not look at every shard. Only the table's functions therefore change `state`,
//   `holder`, `epoch` and `since` of a lease.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "master/core/fingerprint.hpp"
#include "master/core/session.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// A handed-over shard's state beyond its last commit, for the next holder.
struct HandedOver {
  RoundIndex base_round = 0;
  BatchIndex next_batch = 0;
  std::vector<ShardRows> parts;
};

struct ShardLease {
  LeaseState state = LeaseState::kFree;
  SessionId holder{};
  LeaseEpoch epoch{};
  Instant since{};                             // of the state
  std::optional<OutstandingWork> outstanding;  // what its holder owes, once that is known
  RoundIndex committed = 0;                    // rounds of this shard that are stored
  RoundIndex base_round = 0;                   // checkpoint the holder loads
  BatchIndex next_batch = 0;                   // the next batch to hand to the holder
  RoundIndex next_commit = 0;                  // the round whose commit the holder sends next
  std::uint32_t parts_arrived = 0;             // of that commit
  std::uint32_t parts = 0;                     // of that commit, according to its first part
  Fingerprint commit_so_far{};                 // of its parts that have arrived
  std::uint32_t chunks_asked = 0;              // requests for chunks; each chunk is requested once
  std::uint64_t rows_from = 0;  // lowest row that the next part of a commit or hand-over may hold
  std::shared_ptr<HandedOver>
      handed_over;  // kFree, kLoading: what to continue from; kReleasing: so far
  // Shown to people only: progress of a download, the last holder, and why the shard left it or is
  // to leave its holder.
  std::uint32_t chunks = 0;
  std::uint32_t chunks_sent = 0;
  std::string held_before;
  std::string moved_why;
  bool is_standby = false;  // of a shadow: its holder is to take over the free shard
};

// Numbers leases. All tables of a master share the numbers, so that a number does not tell a holder
// that its lease is a shadow.
class LeaseEpochs {
 public:
  explicit LeaseEpochs(LeaseEpoch first = LeaseEpoch{1}) : next_(raw(first)) {}

  LeaseEpoch take() { return LeaseEpoch{next_++}; }

 private:
  std::uint64_t next_;
};

class LeaseTable {
 public:
  // Every shard begins free, with `committed` rounds stored. `epochs` outlives the table.
  LeaseTable(std::uint32_t shards, RoundIndex committed, LeaseEpochs& epochs);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(shards_.size()); }

  [[nodiscard]] const ShardLease& at(ShardId shard) const { return shards_[raw(shard)]; }

  [[nodiscard]] ShardLease& at(ShardId shard) { return shards_[raw(shard)]; }

  // Requires a free shard and `base_round` <= `committed`. The holder loads checkpoint `base_round`
  // and stands before `next_batch`.
  LeaseRef grant(ShardId shard, SessionId holder, RoundIndex base_round, BatchIndex next_batch,
                 Instant now);

  // Requires a free shard and a ready shadow of it. The shadow's holder becomes the shard's holder,
  // under the same epoch.
  void take_over(ShardId shard, const ShardLease& shadow, Instant now);

  // The lease if `session` holds it under this epoch; otherwise null.
  [[nodiscard]] ShardLease* find(const LeaseRef& lease, SessionId session);

  void set_state(ShardId shard, LeaseState state, Instant now);
  // Frees the shard that its holder gave back. `handed_over` stays for the next holder.
  void release(ShardId shard, Instant now);
  // Frees the shards of a vanished holder and returns them in ascending order.
  std::vector<ShardId> revoke_all(SessionId holder, Instant now);

  // Ascending. A copy, so that leases may change while the caller visits the shards.
  [[nodiscard]] std::vector<ShardId> held_by(SessionId holder) const;
  // Ascending. Valid until a lease changes.
  [[nodiscard]] const std::set<ShardId>& shards_of(SessionId holder) const;
  [[nodiscard]] std::size_t count_held_by(SessionId holder) const;

  // All holders, in no order, each with its shards in ascending order.
  [[nodiscard]] const std::unordered_map<SessionId, std::set<ShardId>>& holders() const {
    return holders_;
  }

  [[nodiscard]] const std::set<ShardId>& in_state(LeaseState state) const {
    return states_[static_cast<std::size_t>(state)];
  }

  // Makes take_changed() return the shard although its state has not changed.
  void note_changed(ShardId shard) { changed_.insert(shard); }

  // The shards whose leases have changed since the last call.
  std::set<ShardId> take_changed() { return std::exchange(changed_, {}); }

 private:
  std::vector<ShardLease> shards_;
  // Sessions with a shard that is not kFree.
  std::unordered_map<SessionId, std::set<ShardId>> holders_;
  std::array<std::set<ShardId>, 4> states_;  // by LeaseState
  std::set<ShardId> changed_;
  LeaseEpochs& epochs_;
};

}  // namespace gleaner
