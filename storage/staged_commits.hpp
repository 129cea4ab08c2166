// Commits that are stored and not folded yet (table kStaged), with an index in memory of which
// parts there are. Borrows store and map. One thread at a time.
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

// One part as it is stored.
struct StagedPart {
  std::uint32_t parts = 0;  // of the commit
  SparseUpdate update;
};

// Decodes the payload of a staged record and checks it in full; the error is a clause that says
// what is wrong.
Result<StagedPart> open_staged_part(ByteView payload, ShardId shard, const ShardMap& map);

class StagedCommits {
 public:
  // A commit staged for a round before `first_round` is folded already and counts for nothing.
  StagedCommits(Store& store, const ShardMap& map, RoundIndex first_round);

  // Adds a part; see RunStore::stage.
  Result<void> add(RoundIndex round, ShardId shard, std::uint32_t part, std::uint32_t parts,
                   const SparseUpdate& update);
  // Records that a commit counts; see RunStore::settle.
  Result<void> settle(const SettledRound& settled);
  // Keeps settled commits of the rounds [first, end), and erases all else; see
  // RunStore::keep_settled.
  Result<std::vector<SettledRound>> keep_settled(
      RoundIndex first, RoundIndex end, const std::function<bool(RoundIndex checkpoint)>& ends,
      const std::function<void(const Error&)>& on_damage);
  // True when every part of the shard's commit is there.
  Result<bool> is_whole(RoundIndex round, ShardId shard);
  // Calls `visit` with the shard's parts in order, those that may hold rows of [begin, end).
  // kNotFound unless the commit is whole; kCorrupt when parts do not follow one another.
  Result<void> visit(RoundIndex round, ShardId shard, std::uint32_t begin, std::uint32_t end,
                     const std::function<Result<void>(const SparseUpdate&)>& visit);

  // A part of the shard's commit, which is_whole. kCorrupt when its rows do not follow those of the
  // parts before.
  Result<SparseUpdate> part(RoundIndex round, ShardId shard, std::uint32_t part);
  // The parts of the shard's commit, which is_whole.
  [[nodiscard]] std::uint32_t part_count(RoundIndex round, ShardId shard) const;

  // Rows in the parts of the shard's commit that are there; 0 before anything was asked of it.
  [[nodiscard]] std::uint64_t row_count(RoundIndex round, ShardId shard) const;

  // Erases everything staged for rounds <= `round`, which is folded: not synced, since nobody
  // reads it again, and left for the next time when the disk is full.
  Result<void> erase_through(RoundIndex round);
  // Erases what is staged of the shard for rounds >= `round`; not synced, as add() is not.
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

  // As long as the parts that have come, whatever the first of them promised.
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

  // Reads what is staged, once; only then is a damaged part found, so that a store with one can
  // still be opened and the part dropped.
  Result<void> load();
  // Adds the parts with begin <= key < end (end empty: to the table's end) to the index.
  Result<void> load_range(ByteView begin, ByteView end);
  // The record that a commit counts; nullopt when there is none, or the commit is not whole. Adds
  // the commit's parts to the index.
  Result<std::optional<SettledRound>> load_settled(RoundIndex round, ShardId shard);
  // Erases all commits but these, which are in the order of their keys.
  Result<void> erase_others(const std::vector<SettledRound>& kept);
  // kCorrupt unless the part's first row comes after the last row of the part before it.
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
