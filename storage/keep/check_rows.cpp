// Checks the stored rows and their table entries against each other and the digests of their
// shards.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/row_checks.hpp"
#include "common/train/sim_hash.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/record.hpp"

namespace gleaner {
namespace {

// Rows read together: few, so that an unreadable block of a file hides little else.
constexpr std::uint32_t kRowsPerRead = kHashRowsMax;

// A range of one shard's rows.
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

}  // namespace

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
    findings_.add(Table::kCodes, key, "it does not have one code per table");
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
  // A key that is too short sorts before the first row's key.
  const RowKeyBytes own = encode_row_key({shard, begin});
  const ByteView first = raw(shard) == 0 && begin == 0 ? ByteView() : ByteView(own);
  const RowKeyBytes last = encode_row_key({shard, end});
  const std::uint64_t before = findings_.count();
  block_.rows_are_known =
      walk_records(store_, Table::kRows, first, last, findings_,
                   [&](ByteView key, ByteView, ByteView payload) { take_row(key, payload); });
  // A damaged row exists, so its codes are not without a row.
  block_.rows_are_known &= findings_.count() == before;
  const std::uint64_t between = findings_.count();
  block_.codes_are_known =
      walk_records(store_, Table::kCodes, first, last, findings_,
                   [&](ByteView key, ByteView, ByteView payload) { take_codes(key, payload); });
  block_.codes_are_known &= findings_.count() == between;
}

// Nothing else in the store determines the codes of a wide row, so only missing codes are found.
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
    findings_.add(Table::kCodes, encode_row_key({shard, row}),
                  *stored >= code_limit_
                      ? fmt::format("table {} has no bucket {}", own - codes.begin(), *stored)
                      : fmt::format("it is in bucket {} of table {}, and its weights belong in {}",
                                    *stored, own - codes.begin(), *own));
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
