#include "storage/staged_commits.hpp"

#include <fmt/format.h>

#include <cstring>

#include "common/model/row_checks.hpp"
#include "schema/wire/codec.hpp"
#include "storage/record.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {
namespace {

// Precedes the encoded update: enough to index a part without decoding it. Its size is a multiple
// of a word, as the encoded update's is.
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

Error not_whole(RoundIndex round, ShardId shard) {
  return Error{ErrorCode::kNotFound,
               fmt::format("the commit of shard {} for round {} is not staged as a whole",
                           raw(shard), round)};
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
  Result<void> loaded = load_range(encode_staged_key({first_round_, ShardId{0}, 0}), {});
  is_loaded_ = loaded.ok();
  return loaded;
}

Result<void> StagedCommits::load_range(ByteView begin, ByteView end) {
  Result<void> outcome;
  Result<void> scanned =
      store_.scan(Table::kStaged, begin, end, [&](ByteView key_bytes, ByteView record) {
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
        if (key->part == kSettledPart) return true;
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
  return scanned ? outcome : scanned;
}

Result<void> StagedCommits::note(RoundIndex round, ShardId shard, std::uint32_t part,
                                 std::uint32_t parts, const Part& noted) {
  // Each part has a row, unless it is the only part.
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
  if (raw(shard) >= map_.shard_count())
    return refuse(shard, "is for a shard that the run does not have");
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

Result<void> StagedCommits::settle(const SettledRound& settled) {
  const Result<bool> whole = is_whole(settled.round, settled.shard);
  if (!whole) return whole.error();
  if (!*whole) return not_whole(settled.round, settled.shard);
  WriteBatch batch;
  put_text(batch, Table::kStaged, encode_staged_key({settled.round, settled.shard, kSettledPart}),
           encode_record(settled));
  return store_.write(std::move(batch), Durability::kLazy);
}

Result<std::optional<SettledRound>> StagedCommits::load_settled(RoundIndex round, ShardId shard) {
  const StagedKeyBytes key = encode_staged_key({round, shard, kSettledPart});
  const Result<std::optional<std::string>> text = get_text(store_, Table::kStaged, key);
  if (!text) return text.error();
  if (!text->has_value()) return std::optional<SettledRound>();
  std::optional<SettledRound> settled = decode_record<SettledRound>(**text);
  if (!settled) return corrupt_record(Table::kStaged, key, "it is not the expected record");
  settled->round = round;
  for (ShardId* own :
       {&settled->shard, &settled->first.shard, &settled->rest.shard, &settled->receipt.shard}) {
    *own = shard;
  }
  auto loaded = load_range(encode_staged_key({round, shard, 0}), key);
  if (!loaded) return loaded.error();
  const auto commit = commits_.find({round, shard});
  if (commit == commits_.end() || !commit->second.is_whole()) return std::optional<SettledRound>();
  for (std::uint32_t part = 0; part < commit->second.parts; ++part) {
    if (auto follows = check_order(round, shard, part); !follows) return follows.error();
  }
  return settled;
}

Result<std::vector<SettledRound>> StagedCommits::keep_settled(
    RoundIndex first, RoundIndex end, const std::function<bool(RoundIndex checkpoint)>& ends,
    const std::function<void(const Error&)>& on_damage) {
  first_round_ = first;
  is_loaded_ = false;
  commits_.clear();
  std::vector<SettledRound> kept;
  for (std::uint32_t s = 0; s < map_.shard_count(); ++s) {
    for (RoundIndex round = first; round < end; ++round) {
      Result<std::optional<SettledRound>> settled = load_settled(round, ShardId{s});
      if (!settled && settled.error().code != ErrorCode::kCorrupt) return settled.error();
      if (!settled) on_damage(settled.error());
      if (!settled || !*settled) {
        commits_.erase({round, ShardId{s}});
        break;
      }
      kept.push_back(std::move(**settled));
      if (ends(round + 1)) break;
    }
  }
  std::ranges::sort(kept, {}, [](const SettledRound& s) { return std::pair(s.round, s.shard); });
  if (auto erased = erase_others(kept); !erased) return erased.error();
  is_loaded_ = true;
  return kept;
}

Result<void> StagedCommits::erase_others(const std::vector<SettledRound>& kept) {
  Bytes begin;  // of the keys that may be erased
  for (const SettledRound& settled : kept) {
    const StagedKeyBytes own = encode_staged_key({settled.round, settled.shard, 0});
    const StagedKeyBytes next =
        encode_staged_key({settled.round, ShardId{raw(settled.shard) + 1}, 0});
    auto erased = store_.erase_range(Table::kStaged, begin, own, Durability::kLazy);
    if (!erased) return erased;
    begin.assign(next.begin(), next.end());
  }
  return store_.erase_range(Table::kStaged, begin, {}, Durability::kLazy);
}

Result<bool> StagedCommits::is_whole(RoundIndex round, ShardId shard) {
  if (auto loaded = load(); !loaded) return loaded.error();
  const auto commit = commits_.find({round, shard});
  return commit != commits_.end() && commit->second.is_whole();
}

Result<void> StagedCommits::visit(RoundIndex round, ShardId shard, std::uint32_t begin,
                                  std::uint32_t end,
                                  const std::function<Result<void>(const SparseUpdate&)>& visit) {
  const Result<bool> whole = is_whole(round, shard);
  if (!whole) return whole.error();
  if (!*whole) return not_whole(round, shard);
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

Result<void> StagedCommits::check_order(RoundIndex round, ShardId shard, std::uint32_t part) const {
  const std::vector<Part>& parts = commits_.at({round, shard}).staged;
  const Part& own = parts.at(part);
  std::uint32_t before = part;  // down to the nearest part that has rows
  while (before > 0 && parts[before - 1].rows == 0) --before;
  if (own.rows > 0 && before > 0 && parts[before - 1].last_row >= own.first_row) {
    return corrupt_record(Table::kStaged, encode_staged_key({round, shard, part}),
                          "its rows do not follow the rows of the part before");
  }
  return {};
}

Result<SparseUpdate> StagedCommits::part(RoundIndex round, ShardId shard, std::uint32_t part) {
  if (auto follows = check_order(round, shard, part); !follows) return follows.error();
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
