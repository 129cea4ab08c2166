// Stored commits that are not folded yet (table kStaged), with an index in memory of their parts.
// Borrows store and map. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/bytes.hpp"
#include "common/ids.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "schema/records.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

// A part as it is stored.
struct StagedPart {
  std::uint32_t parts = 0;  // of the commit
  SparseUpdate update;
};

// Decodes the payload of a staged record and checks it in full. The error is a clause.
Result<StagedPart> open_staged_part(ByteView payload, ShardId shard, const ShardMap& map);

class StagedCommits {
 public:
  // Commits staged for rounds before `first_round` are folded already and ignored.
  StagedCommits(Store& store, const ShardMap& map, RoundIndex first_round);

  // Adds a part; see RunStore::stage.
  Result<void> add(RoundIndex round, ShardId shard, std::uint32_t part, std::uint32_t parts,
                   const SparseUpdate& update);
  // Records that a commit counts; see RunStore::settle.
  Result<void> settle(const SettledRound& settled);
  // Keeps settled commits of the rounds [first, end) and erases all others; see
  // RunStore::keep_settled.
  Result<std::vector<SettledRound>> keep_settled(
      RoundIndex first, RoundIndex end, const std::function<bool(RoundIndex checkpoint)>& ends,
      const std::function<void(const Error&)>& on_damage);
  // Whether every part of the shard's commit is staged.
  Result<bool> is_whole(RoundIndex round, ShardId shard);
  // Visits, in order, the parts of the shard's commit that may hold rows of [begin, end). kNotFound
  // unless the commit is complete; kCorrupt when parts do not follow one another.
  Result<void> visit(RoundIndex round, ShardId shard, std::uint32_t begin, std::uint32_t end,
                     const std::function<Result<void>(const SparseUpdate&)>& visit);

  // A part of the shard's commit, which must be complete. kCorrupt when its rows do not follow the
  // rows of the earlier parts.
  Result<SparseUpdate> part(RoundIndex round, ShardId shard, std::uint32_t part);
  // The number of parts of the shard's commit, which must be complete.
  [[nodiscard]] std::uint32_t part_count(RoundIndex round, ShardId shard) const;

  // Rows in the staged parts of the shard's commit; 0 before the index is loaded.
  [[nodiscard]] std::uint64_t row_count(RoundIndex round, ShardId shard) const;

  // Erases everything staged for rounds <= `round`, which is folded. Not synced, since nothing
  // reads it again; left for the next call when the disk is full.
  Result<void> erase_through(RoundIndex round);
  // Erases what the shard has staged for rounds >= `round`; not synced, as add() is not.
  Result<void> erase_shard(RoundIndex round, ShardId shard);
  // Erases everything staged, durably.
  Result<void> erase_all();

 private:
  struct Part {
    bool is_staged = false;
    std::uint32_t rows = 0;
    std::uint32_t first_row = 0;
    std::uint32_t last_row = 0;
  };

  // The parts that have arrived. Its memory does not depend on the promised number of parts.
  struct Commit {
    std::uint32_t parts = 0;
    std::vector<Part> staged;

    [[nodiscard]] bool has(std::uint32_t part) const {
      return part < staged.size() && staged[part].is_staged;
    }

    [[nodiscard]] bool is_whole() const {
      return staged.size() == parts && std::ranges::all_of(staged, &Part::is_staged);
    }
  };

  // Reads the table once, at first use: a store with a damaged part can still be opened, and the
  // part be dropped.
  Result<void> load();
  // Adds the parts with begin <= key < end (end empty: to the table's end) to the index.
  Result<void> load_range(ByteView begin, ByteView end);
  // The record that a commit counts; nullopt when the record is missing or the commit incomplete.
  // Adds the commit's parts to the index.
  Result<std::optional<SettledRound>> load_settled(RoundIndex round, ShardId shard);
  // Erases all commits except `kept`, which is in the order of the keys.
  Result<void> erase_others(const std::vector<SettledRound>& kept);
  // kCorrupt unless the part's first row comes after the last row of the part before.
  [[nodiscard]] Result<void> check_order(RoundIndex round, ShardId shard, std::uint32_t part) const;
  Result<void> note(RoundIndex round, ShardId shard, std::uint32_t part, std::uint32_t parts,
                    const Part& noted);
  Result<SparseUpdate> read_part(RoundIndex round, ShardId shard, std::uint32_t part);

  Store& store_;
  const ShardMap& map_;
  RoundIndex first_round_;
  bool is_loaded_ = false;
  std::map<std::pair<RoundIndex, ShardId>, Commit> commits_;
};

}  // namespace gleaner
