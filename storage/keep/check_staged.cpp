// Checks the staged commits: that each is of an open round, and that its parts follow one another.
#include <algorithm>
#include <optional>
#include <string>

#include "common/model/run_plan.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/keys.hpp"
#include "storage/staged_commits.hpp"

namespace gleaner {
namespace {

// The first round that cannot be open.
RoundIndex open_rounds_end(const ModelConfig& model, RoundIndex checkpoint) {
  const RoundIndex all = RunPlan(model).round_count();
  return is_wide(model) ? all : std::min(all, checkpoint + kRoundsOpenMax);
}

// The parts of one commit, in the order of the scan.
class CommitParts {
 public:
  // The reason why the part does not fit the earlier parts, if any.
  std::optional<std::string> add(const StagedKey& key, const StagedPart& part) {
    if (key.round != round_ || key.shard != shard_ || !has_any_) {
      has_any_ = true;
      round_ = key.round;
      shard_ = key.shard;
      parts_ = part.parts;
      next_part_ = 0;
      rows_from_ = 0;
    }
    if (part.parts != parts_ || key.part >= part.parts) {
      return "it does not agree with the commit's other parts";
    }
    std::optional<std::string> wrong;
    if (key.part != next_part_) wrong = "a part before it is missing";
    next_part_ = key.part + 1;
    if (part.update.rows.empty()) return wrong;
    if (part.update.rows.front() < rows_from_) {
      wrong = "its rows do not follow the rows of the part before";
    }
    rows_from_ = std::uint64_t{part.update.rows.back()} + 1;
    return wrong;
  }

  // Whether all parts of the commit have come, and none of another commit since.
  [[nodiscard]] bool are_whole(const StagedKey& key) const {
    return has_any_ && key.round == round_ && key.shard == shard_ && next_part_ == parts_;
  }

 private:
  bool has_any_ = false;
  RoundIndex round_ = 0;
  ShardId shard_{};
  std::uint32_t parts_ = 0;
  std::uint32_t next_part_ = 0;
  std::uint64_t rows_from_ = 0;
};

// Whether the round certainly has no staged commit.
bool is_empty_round(Store& store, RoundIndex round) {
  bool is_empty = true;
  const auto scanned = store.scan(Table::kStaged, encode_staged_key({round, ShardId{0}, 0}),
                                  encode_staged_key({round + 1, ShardId{0}, 0}),
                                  [&](ByteView, ByteView) { return is_empty = false; });
  return scanned && is_empty;
}

}  // namespace

void check_staged_commits(Store& store, const CheckedRun& run, Findings& findings) {
  std::optional<ShardMap> map;
  if (run.model) map.emplace(*run.model);
  CommitParts parts;
  const auto visit = [&](ByteView key, ByteView, ByteView payload) {
    const std::optional<StagedKey> at = decode_staged_key(key);
    if (!at || (map && raw(at->shard) >= map->shard_count())) {
      findings.add(Table::kStaged, key, "the run has no such shard");
      return;
    }
    if (!map || !run.progress) return;
    // A folded commit is ignored; it is erased with the next round's.
    if (at->round < run.progress->checkpoint) return;
    if (at->round >= open_rounds_end(*run.model, run.progress->checkpoint)) {
      findings.add(Table::kStaged, key, "the round is not open");
      return;
    }
    if (at->part == kSettledPart) {
      if (!decode_record<SettledRound>(as_text(payload))) {
        findings.add(Table::kStaged, key, "it is not the record of a commit that counts");
      } else if (!parts.are_whole(*at)) {
        findings.add(Table::kStaged, key, "its commit is not complete");
      }
      return;
    }
    const auto part = open_staged_part(payload, at->shard, *map);
    if (!part) {
      findings.add(Table::kStaged, key, part.error().message);
    } else if (const auto wrong = parts.add(*at, *part)) {
      findings.add(Table::kStaged, key, *wrong);
    }
  };
  // One shard of a round at a time: an unreadable record does not hide the others.
  if (map && run.progress) {
    const RoundIndex open = run.progress->checkpoint;
    const RoundIndex end = open_rounds_end(*run.model, open);
    walk_records(store, Table::kStaged, {}, encode_staged_key({open, ShardId{0}, 0}), findings,
                 visit);
    for (RoundIndex round = open; round < end; ++round) {
      if (is_empty_round(store, round)) continue;
      for (std::uint32_t s = 0; s < map->shard_count(); ++s) {
        walk_records(store, Table::kStaged, encode_staged_key({round, ShardId{s}, 0}),
                     encode_staged_key({round, ShardId{s + 1}, 0}), findings, visit);
      }
      walk_records(store, Table::kStaged,
                   encode_staged_key({round, ShardId{map->shard_count()}, 0}),
                   encode_staged_key({round + 1, ShardId{0}, 0}), findings, visit);
    }
    walk_records(store, Table::kStaged, encode_staged_key({end, ShardId{0}, 0}), {}, findings,
                 visit);
    return;
  }
  walk_records(store, Table::kStaged, {}, {}, findings, visit);
}

}  // namespace gleaner
