#include "storage/row_tables.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace gleaner {
namespace {

static_assert(std::endian::native == std::endian::little,
              "stored numbers are little endian and written by plain copies");

// When more than this number of rows would be scanned per wanted row, lookups are faster than a
// scan.
constexpr std::uint32_t kRowsPerScanHitMax = 12;

// Bytes per code when the largest code of the row is `largest`.
std::size_t code_bytes(std::uint32_t largest) {
  return std::max<std::size_t>(1, (static_cast<std::size_t>(std::bit_width(largest)) + 7) / 8);
}

// Keeps the first failure of a scan's visits, since a visit itself cannot return one.
class ScanOutcome {
 public:
  // Returns whether the scan should go on.
  bool note(Result<void> result) {
    if (result) return true;
    failure_ = std::move(result);
    return false;
  }

  Result<void> end(Result<void> scanned) {
    return failure_.ok() ? std::move(scanned) : std::move(failure_);
  }

 private:
  Result<void> failure_;
};

}  // namespace

Result<RowKey> RowTables::open_key(Table table, ByteView key_bytes) const {
  const std::optional<RowKey> key = decode_row_key(key_bytes);
  if (!key || raw(key->shard) >= map_.shard_count() || key->row >= map_.row_count(key->shard)) {
    return corrupt_record(table, key_bytes, "the run has no such row");
  }
  return *key;
}

Result<ByteView> RowTables::open_row(ByteView key_bytes, RowKey key, ByteView record) const {
  Result<ByteView> payload = open_record(Table::kRows, key_bytes, record);
  if (payload && payload->size() != (map_.row_width(key.shard) + 1) * sizeof(float)) {
    return corrupt_record(Table::kRows, key_bytes, "it does not have the row's width");
  }
  return payload;
}

Result<void> RowTables::open_codes(ByteView key_bytes, RowKey key, ByteView record,
                                   std::vector<std::uint32_t>& codes) const {
  const Result<ByteView> payload = open_record(Table::kCodes, key_bytes, record);
  if (!payload) return payload.error();
  const std::size_t count = map_.codes_per_row(key.shard);
  const std::size_t width = payload->empty() ? 0 : (*payload)[0];
  if (count == 0 || width < 1 || width > 4 || payload->size() != 1 + count * width) {
    return corrupt_record(Table::kCodes, key_bytes, "it does not have one code per table");
  }
  const std::uint8_t* source = payload->data() + 1;
  const std::size_t first = codes.size();
  codes.resize(first + count);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&codes[first + i], source + i * width, width);
  }
  return {};
}

Result<ShardRows> RowTables::read_range(ShardId shard, std::uint32_t begin,
                                        std::uint32_t end) const {
  ShardRows rows;
  if (begin >= end) return rows;
  const std::uint32_t width = map_.row_width(shard);
  ScanOutcome outcome;
  const auto visit = [&](ByteView key_bytes, ByteView record) {
    const Result<RowKey> key = open_key(Table::kRows, key_bytes);
    if (!key) return outcome.note(key.error());
    const Result<ByteView> payload = open_row(key_bytes, *key, record);
    if (!payload) return outcome.note(payload.error());
    rows.rows.push_back(key->row);
    rows.values.resize(rows.values.size() + width);
    rows.states.emplace_back();
    const std::size_t bytes = width * sizeof(float);
    std::memcpy(rows.values.data() + rows.values.size() - width, payload->data(), bytes);
    std::memcpy(&rows.states.back(), payload->data() + bytes, sizeof(float));
    return true;
  };
  Result<void> scanned = store_.scan(Table::kRows, encode_row_key({shard, begin}),
                                     encode_row_key({shard, end}), visit);
  if (auto read = outcome.end(std::move(scanned)); !read) return read.error();
  if (auto read = read_codes(shard, begin, end, rows); !read) return read.error();
  return rows;
}

Result<void> RowTables::read_codes(ShardId shard, std::uint32_t begin, std::uint32_t end,
                                   ShardRows& rows) const {
  const std::size_t per_row = map_.codes_per_row(shard);
  rows.codes.reserve(rows.rows.size() * per_row);
  std::size_t next = 0;  // index of the row that the next record belongs to
  ScanOutcome outcome;
  const auto visit = [&](ByteView key_bytes, ByteView record) {
    const Result<RowKey> key = open_key(Table::kCodes, key_bytes);
    if (!key) return outcome.note(key.error());
    if (next == rows.rows.size() || rows.rows[next] > key->row) {
      return outcome.note(corrupt_record(Table::kCodes, key_bytes, "the row itself is missing"));
    }
    if (rows.rows[next] < key->row) return false;  // reported after the scan
    ++next;
    return outcome.note(open_codes(key_bytes, *key, record, rows.codes));
  };
  Result<void> scanned = store_.scan(Table::kCodes, encode_row_key({shard, begin}),
                                     encode_row_key({shard, end}), visit);
  if (auto read = outcome.end(std::move(scanned)); !read) return read;
  if (per_row != 0 && next != rows.rows.size()) {
    return corrupt_record(Table::kCodes, encode_row_key({shard, rows.rows[next]}), "it is missing");
  }
  return {};
}

Result<SelectedRows> RowTables::read_selected(ShardId shard,
                                              std::span<const std::uint32_t> rows) const {
  SelectedRows selected;
  selected.is_stored.assign(rows.size(), 0);
  selected.values.resize(rows.size() * map_.row_width(shard));
  selected.digests.assign(rows.size(), 0);
  if (rows.empty()) return selected;
  const std::uint64_t passed = std::uint64_t{rows.back()} - rows.front() + 1;
  const bool is_dense = passed / rows.size() <= kRowsPerScanHitMax;
  Result<void> read =
      is_dense ? select_by_scan(shard, rows, selected) : select_by_get(shard, rows, selected);
  if (!read) return read.error();
  return selected;
}

Result<void> RowTables::select(std::size_t index, ByteView key_bytes, RowKey key, ByteView record,
                               SelectedRows& selected) const {
  const Result<ByteView> payload = open_row(key_bytes, key, record);
  if (!payload) return payload.error();
  const std::size_t width = map_.row_width(key.shard);
  std::memcpy(selected.values.data() + index * width, payload->data(), width * sizeof(float));
  selected.is_stored[index] = 1;
  selected.digests[index] = row_digest(key.shard, key.row, *payload);
  return {};
}

Result<void> RowTables::select_by_scan(ShardId shard, std::span<const std::uint32_t> rows,
                                       SelectedRows& selected) const {
  std::size_t next = 0;
  ScanOutcome outcome;
  const auto visit = [&](ByteView key_bytes, ByteView record) {
    const Result<RowKey> key = open_key(Table::kRows, key_bytes);
    if (!key) return outcome.note(key.error());
    while (next < rows.size() && rows[next] < key->row) ++next;
    if (next == rows.size()) return false;
    if (rows[next] != key->row) return true;
    return outcome.note(select(next, key_bytes, *key, record, selected));
  };
  Result<void> scanned =
      store_.scan(Table::kRows, encode_row_key({shard, rows.front()}), row_keys_end(shard), visit);
  return outcome.end(std::move(scanned));
}

Result<void> RowTables::select_by_get(ShardId shard, std::span<const std::uint32_t> rows,
                                      SelectedRows& selected) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowKey key{shard, rows[i]};
    const RowKeyBytes key_bytes = encode_row_key(key);
    const Result<std::optional<Bytes>> record = store_.get(Table::kRows, key_bytes);
    if (!record) return record.error();
    if (!record->has_value()) continue;
    if (auto read = select(i, key_bytes, key, **record, selected); !read) return read;
  }
  return {};
}

Result<void> RowTables::visit_rows(
    const std::function<Result<void>(const StoredRow&)>& visit) const {
  ScanOutcome outcome;
  Result<void> scanned =
      store_.scan(Table::kRows, {}, {}, [&](ByteView key_bytes, ByteView record) {
        const Result<RowKey> key = open_key(Table::kRows, key_bytes);
        if (!key) return outcome.note(key.error());
        const Result<ByteView> payload = open_row(key_bytes, *key, record);
        if (!payload) return outcome.note(payload.error());
        return outcome.note(visit({*key, key_bytes, *payload}));
      });
  return outcome.end(std::move(scanned));
}

Result<void> RowTables::visit_codes(
    const std::function<Result<void>(RowKey, std::span<const std::uint32_t>)>& visit) const {
  ScanOutcome outcome;
  std::vector<std::uint32_t> codes;
  Result<void> scanned =
      store_.scan(Table::kCodes, {}, {}, [&](ByteView key_bytes, ByteView record) {
        const Result<RowKey> key = open_key(Table::kCodes, key_bytes);
        if (!key) return outcome.note(key.error());
        codes.clear();
        if (!outcome.note(open_codes(key_bytes, *key, record, codes))) return false;
        return outcome.note(visit(*key, codes));
      });
  return outcome.end(std::move(scanned));
}

std::uint64_t row_bytes(const ShardMap& map, ShardId shard) {
  constexpr std::uint64_t kRecordBytes = 32;  // key, version, checksum and a margin
  const std::uint64_t row = (map.row_width(shard) + 1) * sizeof(float) + kRecordBytes;
  const std::uint64_t codes = map.codes_per_row(shard);
  return codes == 0 ? row : row + codes * 2 + kRecordBytes;
}

Result<std::uint64_t> RowTables::put(SortedWriter& writer, RowKey key,
                                     std::span<const float> values, float state,
                                     std::span<const std::uint32_t> codes) {
  GLEANER_CHECK(
      values.size() == map_.row_width(key.shard) &&
      (codes.size() == map_.codes_per_row(key.shard) || (map_.is_wide() && codes.empty())));
  const RowKeyBytes key_bytes = encode_row_key(key);
  std::uint8_t* target = record_.begin(values.size_bytes() + sizeof state);
  std::memcpy(target, values.data(), values.size_bytes());
  std::memcpy(target + values.size_bytes(), &state, sizeof state);
  const std::uint64_t digest =
      row_digest(key.shard, key.row, {target, values.size_bytes() + sizeof state});
  const ByteView row = record_.seal(Table::kRows, key_bytes);
  if (auto put = writer.put(Table::kRows, key_bytes, row); !put) return put.error();
  if (codes.empty()) return digest;

  const std::size_t width = code_bytes(*std::max_element(codes.begin(), codes.end()));
  target = record_.begin(1 + codes.size() * width);
  *target++ = static_cast<std::uint8_t>(width);
  for (const std::uint32_t code : codes) {
    std::memcpy(target, &code, width);
    target += width;
  }
  const ByteView entry = record_.seal(Table::kCodes, key_bytes);
  if (auto put = writer.put(Table::kCodes, key_bytes, entry); !put) return put.error();
  return digest;
}

}  // namespace gleaner
