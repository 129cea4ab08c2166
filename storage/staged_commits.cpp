#include "storage/staged_commits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "common/model/row_checks.hpp"
#include "common/result.hpp"
#include "schema/wire/codec.hpp"
#include "storage/record.hpp"

namespace gleaner {
namespace {

// In front of the encoded update: enough to index a part without decoding it. A multiple of a word,
// as the encoded update is.
struct PartHeader {
  std::uint32_t parts = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_row = 0;  // both 0 without rows
  std::uint32_t last_row = 0;
};

static_assert(sizeof(PartHeader) == 16);

Error refuse(ShardId shard, std::string what) {
  return Error{ErrorCode::kProtocol, fmt::format("the commit of shard {} {}", raw(shard), what)};
}

PartHeader header_of(std::uint32_t parts, const SparseUpdate& update) {
  PartHeader header{parts, static_cast<std::uint32_t>(update.rows.size()), 0, 0};
  if (!update.rows.empty()) {
    header.first_row = update.rows.front();
    header.last_row = update.rows.back();
  }
  return header;
}

Bytes encode_part(std::uint32_t parts, const SparseUpdate& update) {
  const PartHeader header = header_of(parts, update);
  const Bytes encoded = encode_update(update);
  Bytes payload(sizeof header + encoded.size());
  std::memcpy(payload.data(), &header, sizeof header);
  if (!encoded.empty()) std::memcpy(payload.data() + sizeof header, encoded.data(), encoded.size());
  return payload;
}

Result<PartHeader> decode_header(ByteView key, ByteView payload) {
  PartHeader header;
  if (payload.size() < sizeof header) {
    return corrupt_record(Table::kStaged, key, "it is cut short");
  }
  std::memcpy(&header, payload.data(), sizeof header);
  return header;
}

}  // namespace

Result<StagedPart> open_staged_part(ByteView payload, ShardId shard, const ShardMap& map) {
  PartHeader header;
  if (payload.size() < sizeof header) return Error{ErrorCode::kCorrupt, "it is cut short"};
  std::memcpy(&header, payload.data(), sizeof header);
  Result<SparseUpdate> update = decode_update(payload.subspan(sizeof header));
  if (!update) return update.error();
  if (auto checked = check_update(map, shard, *update); !checked) return checked.error();
  const PartHeader expected = header_of(header.parts, *update);
  if (std::memcmp(&header, &expected, sizeof header) != 0) {
    return Error{ErrorCode::kCorrupt, "its header does not describe its rows"};
  }
  return StagedPart{header.parts, std::move(*update)};
}

StagedCommits::StagedCommits(Store& store, const ShardMap& map, RoundIndex first_round)
    : store_(store), map_(map), first_round_(first_round) {}

Result<void> StagedCommits::load() {
  if (is_loaded_) return {};
  commits_.clear();
  Result<void> outcome;
  const StagedKeyBytes first = encode_staged_key({first_round_, ShardId{0}, 0});
  Result<void> scanned =
      store_.scan(Table::kStaged, first, {}, [&](ByteView key_bytes, ByteView record) {
        const std::optional<StagedKey> key = decode_staged_key(key_bytes);
        if (!key || raw(key->shard) >= map_.shard_count()) {
          outcome = corrupt_record(Table::kStaged, key_bytes, "the run has no such shard");
          return false;
        }
        const Result<ByteView> payload = open_record(Table::kStaged, key_bytes, record);
        if (!payload) {
          outcome = payload.error();
          return false;
        }
        const Result<PartHeader> header = decode_header(key_bytes, *payload);
        if (!header) {
          outcome = header.error();
          return false;
        }
        const Part part{true, header->rows, header->first_row, header->last_row};
        if (!note(key->round, key->shard, key->part, header->parts, part)) {
          outcome = corrupt_record(Table::kStaged, key_bytes,
                                   "it does not agree with the commit's other parts");
        }
        return outcome.ok();
      });
  if (!scanned) return scanned;
  is_loaded_ = outcome.ok();
  return outcome;
}

Result<void> StagedCommits::note(RoundIndex round, ShardId shard, std::uint32_t part,
                                 std::uint32_t parts, const Part& noted) {
  // Each part holds a row, unless it is the only one.
  if (parts == 0 || parts > std::max(1u, map_.row_count(shard)) || part >= parts) {
    return refuse(shard, fmt::format("has a part {} of {}", part, parts));
  }
  Commit& commit = commits_[{round, shard}];
  if (commit.parts == 0) commit.parts = parts;
  if (commit.parts != parts) {
    return refuse(shard, fmt::format("for round {} came in {} parts and now has {}", round,
                                     commit.parts, parts));
  }
  if (commit.staged.size() <= part) commit.staged.resize(part + 1);
  commit.staged[part] = noted;
  return {};
}

Result<void> StagedCommits::add(RoundIndex round, ShardId shard, std::uint32_t part,
                                std::uint32_t parts, const SparseUpdate& update) {
  if (raw(shard) >= map_.shard_count()) return refuse(shard, "is for a shard the run has not");
  if (auto checked = check_update(map_, shard, update); !checked) {
    return refuse(shard, "cannot be: " + checked.error().message);
  }
  if (auto loaded = load(); !loaded) return loaded;

  const StagedKeyBytes key = encode_staged_key({round, shard, part});
  const Bytes record = seal_record(Table::kStaged, key, encode_part(parts, update));
  const auto known = commits_.find({round, shard});
  if (known != commits_.end() && known->second.has(part)) {
    const Result<std::optional<Bytes>> staged = store_.get(Table::kStaged, key);
    if (!staged) return staged.error();
    if (staged->has_value() && **staged == record) return {};
    return Error{ErrorCode::kFault,
                 fmt::format("part {} of the commit of shard {} for round {} differs from what is "
                             "staged already",
                             part, raw(shard), round)};
  }
  // Refused before it is written, so that the index and the store never disagree.
  Part noted{false, static_cast<std::uint32_t>(update.rows.size()), 0, 0};
  if (auto refused = note(round, shard, part, parts, noted); !refused) return refused;
  WriteBatch batch;
  batch.put(Table::kStaged, key, record);
  if (auto written = store_.write(std::move(batch), Durability::kLazy); !written) return written;
  noted.is_staged = true;
  if (!update.rows.empty()) {
    noted.first_row = update.rows.front();
    noted.last_row = update.rows.back();
  }
  return note(round, shard, part, parts, noted);
}

Result<bool> StagedCommits::is_whole(RoundIndex round, ShardId shard) {
  if (auto loaded = load(); !loaded) return loaded.error();
  const auto commit = commits_.find({round, shard});
  return commit != commits_.end() && commit->second.staged.size() == commit->second.parts &&
         std::ranges::all_of(commit->second.staged, &Part::is_staged);
}

Result<void> StagedCommits::visit(RoundIndex round, ShardId shard, std::uint32_t begin,
                                  std::uint32_t end,
                                  const std::function<Result<void>(const SparseUpdate&)>& visit) {
  const Result<bool> whole = is_whole(round, shard);
  if (!whole) return whole.error();
  if (!*whole) {
    return Error{ErrorCode::kNotFound, fmt::format("the commit of shard {} for round {} is not "
                                                   "staged as a whole",
                                                   raw(shard), round)};
  }
  const std::vector<Part>& parts = commits_.at({round, shard}).staged;
  for (std::uint32_t index = 0; index < parts.size(); ++index) {
    const Part& own = parts[index];
    if (own.rows == 0 || own.last_row < begin || own.first_row >= end) continue;
    const Result<SparseUpdate> update = part(round, shard, index);
    if (!update) return update.error();
    if (auto visited = visit(*update); !visited) return visited;
  }
  return {};
}

Result<SparseUpdate> StagedCommits::part(RoundIndex round, ShardId shard, std::uint32_t part) {
  const std::vector<Part>& parts = commits_.at({round, shard}).staged;
  const Part& own = parts.at(part);
  std::uint32_t before = part;  // down to the nearest part that has rows
  while (before > 0 && parts[before - 1].rows == 0) --before;
  if (own.rows > 0 && before > 0 && parts[before - 1].last_row >= own.first_row) {
    return corrupt_record(Table::kStaged, encode_staged_key({round, shard, part}),
                          "its rows do not follow those of the part before");
  }
  return read_part(round, shard, part);
}

std::uint32_t StagedCommits::part_count(RoundIndex round, ShardId shard) const {
  return commits_.at({round, shard}).parts;
}

std::uint64_t StagedCommits::row_count(RoundIndex round, ShardId shard) const {
  std::uint64_t rows = 0;
  const auto commit = commits_.find({round, shard});
  if (commit == commits_.end()) return rows;
  for (const Part& part : commit->second.staged) rows += part.rows;
  return rows;
}

Result<SparseUpdate> StagedCommits::read_part(RoundIndex round, ShardId shard, std::uint32_t part) {
  const StagedKeyBytes key = encode_staged_key({round, shard, part});
  const Result<std::optional<Bytes>> record = store_.get(Table::kStaged, key);
  if (!record) return record.error();
  if (!record->has_value()) return corrupt_record(Table::kStaged, key, "it is missing");
  const Result<ByteView> payload = open_record(Table::kStaged, key, **record);
  if (!payload) return payload.error();
  Result<StagedPart> opened = open_staged_part(*payload, shard, map_);
  if (!opened) return corrupt_record(Table::kStaged, key, opened.error().message.c_str());
  return std::move(opened->update);
}

Result<void> StagedCommits::erase_through(RoundIndex round) {
  first_round_ = round + 1;
  const StagedKeyBytes end = encode_staged_key({first_round_, ShardId{0}, 0});
  commits_.erase(commits_.begin(), commits_.lower_bound({first_round_, ShardId{0}}));
  Result<void> erased = store_.erase_range(Table::kStaged, {}, end, Durability::kLazy);
  if (!erased && erased.error().code == ErrorCode::kDiskFull) return {};
  return erased;
}

Result<void> StagedCommits::erase_shard(RoundIndex round, ShardId shard) {
  if (auto loaded = load(); !loaded) return loaded;
  const RoundIndex last = commits_.empty() ? 0 : commits_.rbegin()->first.first;
  for (; round <= last; ++round) {
    const auto commit = commits_.find({round, shard});
    if (commit == commits_.end()) continue;
    const StagedKeyBytes begin = encode_staged_key({round, shard, 0});
    const StagedKeyBytes end = encode_staged_key({round, ShardId{raw(shard) + 1}, 0});
    auto erased = store_.erase_range(Table::kStaged, begin, end, Durability::kLazy);
    if (!erased) return erased;
    commits_.erase(commit);
  }
  return {};
}

Result<void> StagedCommits::erase_all() {
  if (auto erased = store_.erase_range(Table::kStaged, {}, {}, Durability::kSync); !erased) {
    return erased;
  }
  commits_.clear();
  first_round_ = 0;  // the run may go back to an earlier round
  return {};
}

}  // namespace gleaner
