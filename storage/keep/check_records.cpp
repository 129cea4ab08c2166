// Audits staged commits, the history, the ledger, and rows with their table entries.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include "common/model/row_checks.hpp"
#include "common/model/run_plan.hpp"
#include "common/train/sim_hash.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/record.hpp"
#include "storage/staged_commits.hpp"

namespace gleaner {

namespace {

// The first round that cannot be open.
RoundIndex open_rounds_end(const ModelConfig& model, RoundIndex checkpoint) {
  const RoundIndex all = RunPlan(model).round_count();
  return is_wide(model) ? all : std::min(all, checkpoint + kRoundsOpenMax);
}

// The parts of one commit as they come by.
class CommitParts {
 public:
  // Why the part does not fit those before it.
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
      wrong = "its rows do not follow those of the part before";
    }
    rows_from_ = std::uint64_t{part.update.rows.back()} + 1;
    return wrong;
  }

  // Whether all parts of the commit have come by, and no others since.
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

// Whether nothing is staged for the round, for sure.
bool is_empty_round(Store& store, RoundIndex round) {
  bool is_empty = true;
  const auto scanned = store.scan(Table::kStaged, encode_staged_key({round, ShardId{0}, 0}),
                                  encode_staged_key({round + 1, ShardId{0}, 0}),
                                  [&](ByteView, ByteView) { return is_empty = false; });
  return scanned && is_empty;
}

// A share that was measured lies between 0 and 1.
bool is_fraction(double value) {
  return value < 0 || value <= 1;
}

std::optional<std::string> history_fault(const RoundRecord& record, RoundIndex key,
                                         const CheckedRun& run) {
  if (record.checkpoint != key) return "it is not a history record of its key";
  bool are_fractions = true;
  visit_depths(record.precision, [&](const char*, const char*, double value) {
    are_fractions &= is_fraction(value);
  });
  if (!are_fractions) return "it has a precision above 1";
  if (!run.model || !run.progress) return std::nullopt;
  if (key == 0 || key > run.progress->checkpoint) return "the run has no such checkpoint";
  const RunPlan plan(*run.model);
  if (record.batches != plan.round_begin(key)) {
    return fmt::format("it counts {} batches, and the run has {} there", record.batches,
                       plan.round_begin(key));
  }
  const auto cuts = std::ranges::count_if(
      run.progress->rate_cuts, [&](BatchIndex cut) { return cut <= plan.round_begin(key - 1); });
  if (std::cmp_not_equal(record.rate_cuts, cuts)) {
    return fmt::format("it counts {} halvings of the rates, and the run's progress has {} by then",
                       record.rate_cuts, cuts);
  }
  if (key != run.progress->checkpoint || record.rows_digest == 0) return std::nullopt;
  std::vector<ShardDigest> digests;
  for (const std::optional<ShardDigest>& digest : run.digests) {
    if (!digest) return std::nullopt;
    digests.push_back(*digest);
  }
  if (record.rows_digest != rows_digest(digests)) return "its digest is not that of the shards";
  return std::nullopt;
}

// Whether the parts add up to more than `all`. One by one, so that the sum cannot run over.
bool are_more(std::initializer_list<std::uint64_t> parts, std::uint64_t all) {
  for (const std::uint64_t part : parts) {
    if (part > all) return true;
    all -= part;
  }
  return false;
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
    // A commit that is folded counts for nothing and is erased with the next round.
    if (at->round < run.progress->checkpoint) return;
    if (at->round >= open_rounds_end(*run.model, run.progress->checkpoint)) {
      findings.add(Table::kStaged, key, "the round is not open");
      return;
    }
    if (at->part == kSettledPart) {
      if (!decode_record<SettledRound>(as_text(payload))) {
        findings.add(Table::kStaged, key, "it is not the record of a commit that counts");
      } else if (!parts.are_whole(*at)) {
        findings.add(Table::kStaged, key, "the commit that it is about is not whole");
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
  // A shard of a round at a time: what cannot be read does not hide the others.
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

void check_history(Store& store, const CheckedRun& run, Findings& findings,
                   const CheckHooks& hooks) {
  std::vector<bool> is_there(run.progress ? run.progress->checkpoint + 1 : 0);
  const std::uint64_t before = findings.count();
  const bool is_whole = walk_records(
      store, Table::kHistory, {}, {}, findings,
      [&](ByteView key, ByteView record, ByteView payload) {
        const std::optional<RoundIndex> checkpoint = decode_history_key(key);
        if (!checkpoint) {
          findings.add(Table::kHistory, key, "it is not the key of a checkpoint");
          return;
        }
        if (*checkpoint < is_there.size()) is_there[*checkpoint] = true;
        const auto decoded = decode_record<RoundRecord>(as_text(payload));
        const auto wrong = decoded ? history_fault(*decoded, *checkpoint, run)
                                   : std::optional<std::string>("it is not a history record");
        if (wrong) {
          findings.add(Table::kHistory, key, *wrong);
        } else {
          hooks.on_record(Table::kHistory, key, record);
        }
      });
  if (!is_whole) return;
  for (RoundIndex checkpoint = 1; checkpoint < is_there.size(); ++checkpoint) {
    if (is_there[checkpoint]) continue;
    const HistoryKeyBytes key = encode_history_key(checkpoint);
    // A damaged one has been found already, and is there.
    const auto record = store.get(Table::kHistory, key);
    const bool is_damaged = findings.count() != before && record && record->has_value();
    if (!is_damaged) findings.add(Table::kHistory, key, "it is missing");
  }
}

namespace {

// Whether the receipts are those of a round of the run: one a shard.
bool are_receipts(std::string_view text, RoundIndex round, const CheckedRun& run) {
  const auto receipts = decode_receipts(text);
  if (!receipts) return false;
  if (!run.model) return true;
  if (round >= RunPlan(*run.model).round_count()) return false;
  const std::uint32_t shards = ShardMap(*run.model).shard_count();
  return receipts->shards.size() == shards && raw(receipts->shards.back().shard) == shards - 1;
}

}  // namespace

void check_ledger(Store& store, const CheckedRun& run, Findings& findings,
                  const CheckHooks& hooks) {
  bool has_units = false;
  bool has_epochs = false;
  const ByteView epoch_key = lease_epoch_key();
  const auto visit = [&](ByteView key, ByteView record, ByteView payload) {
    if (std::ranges::equal(key, epoch_key)) {
      has_epochs = true;
      const auto epochs = decode_record<LeaseEpochRecord>(as_text(payload));
      if (!epochs || epochs->next == 0) {
        findings.add(Table::kLedger, key, "it is not a record of lease epochs");
      } else {
        hooks.on_record(Table::kLedger, key, record);
      }
      return;
    }
    if (const auto round = decode_receipts_key(key)) {
      if (are_receipts(as_text(payload), *round, run)) {
        hooks.on_record(Table::kLedger, key, record);
      } else {
        findings.add(Table::kLedger, key, "these are not the receipts of a round, one a shard");
      }
      return;
    }
    if (!decode_account_key(key)) {
      findings.add(Table::kLedger, key, "it is not the key of an account");
      return;
    }
    const auto account = decode_record<AccountRecord>(as_text(payload));
    if (!account) {
      findings.add(Table::kLedger, key, "it is not an account");
      return;
    }
    has_units |= account->units_issued > 0;
    if (are_more({account->units, account->units_refused, account->units_expired},
                 account->units_issued)) {
      findings.add(Table::kLedger, key,
                   fmt::format("more units ended ({} answered, {} refused, {} expired) than the "
                               "{} that were sent",
                               account->units, account->units_refused, account->units_expired,
                               account->units_issued));
      return;
    }
    for (const Traffic* t : {&account->down, &account->up}) {
      if (!are_more({t->units, t->evaluation, t->commits, t->shards, t->points}, t->all)) continue;
      findings.add(Table::kLedger, key,
                   fmt::format("its bytes by kind are more than the {} of all", t->all));
      return;
    }
    hooks.on_record(Table::kLedger, key, record);
  };
  const std::uint64_t before = findings.count();
  const bool is_whole = walk_records(store, Table::kLedger, {}, {}, findings, visit);
  if (!is_whole || has_epochs || !has_units || findings.count() != before) return;
  findings.add(Table::kLedger, epoch_key, "it is missing");
}

namespace {

// Read together: what lies in one unreadable block of a file must not hide much else.
constexpr std::uint32_t kRowsPerRead = kHashRowsMax;

// A range of one shard's rows as they are read.
struct RowBlock {
  std::vector<std::uint32_t> rows;  // ascending
  std::vector<Bytes> payloads;      // parallel: values, then the state
  std::vector<std::uint32_t> code_rows;
  std::vector<std::vector<std::uint32_t>> codes;  // parallel to code_rows
  bool rows_are_known = false;                    // all of the range could be read
  bool codes_are_known = false;
};

class RowsCheck {
 public:
  RowsCheck(Store& store, const CheckedRun& run, Findings& findings, const CheckHooks& hooks)
      : store_(store),
        run_(run),
        findings_(findings),
        hooks_(hooks),
        map_(*run.model),
        code_limit_(1u << run.model->hash_bits),
        row_codes_(*run.model) {}

  void run();

 private:
  void check_shard(ShardId shard);
  void read_block(ShardId shard, std::uint32_t begin, std::uint32_t end);
  void take_row(ByteView key, ByteView payload);
  void take_codes(ByteView key, ByteView payload);
  void compare_block(ShardId shard);
  void compare_wide_block(ShardId shard);
  void refuse_keys_between(ByteView begin, ByteView end);
  [[nodiscard]] bool is_sound(ByteView key, ByteView payload);

  Store& store_;
  const CheckedRun& run_;
  Findings& findings_;
  const CheckHooks& hooks_;
  const ShardMap map_;
  const std::uint32_t code_limit_;
  RowCodes row_codes_;
  RowBlock block_;
  ShardDigest seen_;
};

bool RowsCheck::is_sound(ByteView key, ByteView payload) {
  std::vector<float> values(payload.size() / sizeof(float));
  std::memcpy(values.data(), payload.data(), payload.size());
  const float state = values.back();
  values.pop_back();
  if (!is_sound_state(state)) {
    findings_.add(Table::kRows, key, "it has an optimizer state beyond any that training gives");
    return false;
  }
  const bool fits = are_sound_weights(values);
  if (!fits) findings_.add(Table::kRows, key, "it has weights beyond any that training gives");
  return fits;
}

void RowsCheck::take_row(ByteView key, ByteView payload) {
  const std::optional<RowKey> at = decode_row_key(key);
  if (!at) {
    findings_.add(Table::kRows, key, "it is not the key of a row");
    return;
  }
  if (payload.size() != (map_.row_width(at->shard) + 1) * sizeof(float)) {
    findings_.add(Table::kRows, key, "it does not have the row's width");
    return;
  }
  ++seen_.rows;
  seen_.sum += row_digest(at->shard, at->row, payload);
  if (!is_sound(key, payload)) return;
  block_.rows.push_back(at->row);
  block_.payloads.emplace_back(payload.begin(), payload.end());
}

void RowsCheck::take_codes(ByteView key, ByteView payload) {
  const std::optional<RowKey> at = decode_row_key(key);
  if (!at) {
    findings_.add(Table::kCodes, key, "it is not the key of a row");
    return;
  }
  const std::size_t count = map_.codes_per_row(at->shard);
  if (count == 0) {
    findings_.add(Table::kCodes, key, "the shard has no tables");
    return;
  }
  const std::size_t width = payload.empty() ? 0 : payload[0];
  if (width < 1 || width > 4 || payload.size() != 1 + count * width) {
    findings_.add(Table::kCodes, key, "it does not have one code a table");
    return;
  }
  std::vector<std::uint32_t> codes(count);
  for (std::size_t t = 0; t < count; ++t) {
    std::memcpy(&codes[t], payload.data() + 1 + t * width, width);
  }
  block_.code_rows.push_back(at->row);
  block_.codes.push_back(std::move(codes));
}

void RowsCheck::read_block(ShardId shard, std::uint32_t begin, std::uint32_t end) {
  block_ = {};
  // A key that is too short sorts before the first row's.
  const RowKeyBytes own = encode_row_key({shard, begin});
  const ByteView first = raw(shard) == 0 && begin == 0 ? ByteView() : ByteView(own);
  const RowKeyBytes last = encode_row_key({shard, end});
  const std::uint64_t before = findings_.count();
  block_.rows_are_known =
      walk_records(store_, Table::kRows, first, last, findings_,
                   [&](ByteView key, ByteView, ByteView payload) { take_row(key, payload); });
  // A damaged row is there, so its entry is not without a row.
  block_.rows_are_known &= findings_.count() == before;
  const std::uint64_t between = findings_.count();
  block_.codes_are_known =
      walk_records(store_, Table::kCodes, first, last, findings_,
                   [&](ByteView key, ByteView, ByteView payload) { take_codes(key, payload); });
  block_.codes_are_known &= findings_.count() == between;
}

// The codes of a wide row follow from nothing else in the store, so only their absence is found.
void RowsCheck::compare_wide_block(ShardId shard) {
  auto codes = block_.code_rows.begin();
  for (std::size_t i = 0; i < block_.rows.size(); ++i) {
    const std::uint32_t row = block_.rows[i];
    codes = std::lower_bound(codes, block_.code_rows.end(), row);
    if (codes != block_.code_rows.end() && *codes == row) {
      const auto at = static_cast<std::size_t>(codes - block_.code_rows.begin());
      hooks_.on_row({shard, row, block_.payloads[i], block_.codes[at]});
    } else if (block_.codes_are_known) {
      findings_.add(Table::kCodes, encode_row_key({shard, row}), "it is missing");
    }
  }
}

void RowsCheck::compare_block(ShardId shard) {
  if (map_.is_wide()) return compare_wide_block(shard);
  const std::size_t tables = map_.codes_per_row(shard);
  const std::size_t hidden = run_.model->hidden;
  std::span<const std::uint32_t> computed;
  if (tables != 0) {
    std::vector<float> weights(block_.rows.size() * hidden);
    for (std::size_t i = 0; i < block_.rows.size(); ++i) {
      std::memcpy(weights.data() + i * hidden, block_.payloads[i].data(), hidden * sizeof(float));
    }
    computed = row_codes_.of(weights, hidden);
  }
  std::size_t next = 0;
  const auto refuse_until = [&](std::uint32_t row) {
    for (; next < block_.code_rows.size() && block_.code_rows[next] < row; ++next) {
      if (!block_.rows_are_known) continue;
      findings_.add(Table::kCodes, encode_row_key({shard, block_.code_rows[next]}),
                    "the row itself is missing");
    }
  };
  for (std::size_t i = 0; i < block_.rows.size(); ++i) {
    const std::uint32_t row = block_.rows[i];
    const std::span<const std::uint32_t> codes = computed.subspan(i * tables, tables);
    hooks_.on_row({shard, row, block_.payloads[i], codes});
    if (tables == 0) continue;
    refuse_until(row);
    if (next == block_.code_rows.size() || block_.code_rows[next] != row) {
      if (block_.codes_are_known) {
        findings_.add(Table::kCodes, encode_row_key({shard, row}), "it is missing");
      }
      continue;
    }
    const auto [own, stored] = std::ranges::mismatch(codes, block_.codes[next++]);
    if (own == codes.end()) continue;
    findings_.add(
        Table::kCodes, encode_row_key({shard, row}),
        *stored >= code_limit_
            ? fmt::format("table {} has no bucket {}", own - codes.begin(), *stored)
            : fmt::format("it stands in bucket {} of table {}, its weights belong into {}", *stored,
                          own - codes.begin(), *own));
  }
  refuse_until(UINT32_MAX);
}

void RowsCheck::refuse_keys_between(ByteView begin, ByteView end) {
  for (const Table table : {Table::kRows, Table::kCodes}) {
    walk_records(store_, table, begin, end, findings_, [&](ByteView key, ByteView, ByteView) {
      findings_.add(table, key, "the run has no such row");
    });
  }
}

void RowsCheck::check_shard(ShardId shard) {
  seen_ = {};
  const std::uint32_t rows = map_.row_count(shard);
  for (std::uint32_t begin = 0; begin < rows; begin += std::min(kRowsPerRead, rows - begin)) {
    read_block(shard, begin, begin + std::min(kRowsPerRead, rows - begin));
    compare_block(shard);
  }
  const bool is_last = raw(shard) + 1 == map_.shard_count();
  refuse_keys_between(encode_row_key({shard, rows}), is_last ? Bytes() : row_keys_end(shard));
  const std::optional<ShardDigest>& expected = run_.digests[raw(shard)];
  if (!expected || *expected == seen_) return;
  findings_.add("rows", fmt::format("shard {}", raw(shard)),
                expected->rows == seen_.rows
                    ? "some of its rows are not the last folded ones"
                    : fmt::format("it should have {} stored rows and {} can be read",
                                  expected->rows, seen_.rows));
}

void RowsCheck::run() {
  std::uint64_t total = 0;
  for (std::uint32_t s = 0; s < map_.shard_count(); ++s) total += map_.row_count(ShardId{s});
  std::uint64_t done = 0;
  for (std::uint32_t s = 0; s < map_.shard_count(); ++s) {
    check_shard(ShardId{s});
    done += map_.row_count(ShardId{s});
    hooks_.on_progress(done, total);
  }
}

}  // namespace

void check_stored_rows(Store& store, const CheckedRun& run, Findings& findings,
                       const CheckHooks& hooks) {
  if (run.model) {
    RowsCheck(store, run, findings, hooks).run();
    return;
  }
  // Without the model only the envelopes can be checked.
  for (const Table table : {Table::kRows, Table::kCodes}) {
    walk_records(store, table, {}, {}, findings, [](ByteView, ByteView, ByteView) {});
  }
}

}  // namespace gleaner
