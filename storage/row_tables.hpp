// The rows of shards in tables kRows and kCodes. Borrows store and map. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/bytes.hpp"
#include "common/ids.hpp"
#include "common/model/shard_map.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "storage/engine/store.hpp"
#include "storage/record.hpp"

namespace gleaner {

// For each requested row: whether it is stored, and its values without hash codes.
struct SelectedRows {
  std::vector<std::uint8_t> is_stored;  // one per requested row: 0 or 1
  std::vector<float> values;            // row_width per requested row; only stored rows are set
  std::vector<std::uint64_t> digests;   // row_digest of stored rows, else 0
};

// Approximate bytes of a stored row of the shard in both tables.
std::uint64_t row_bytes(const ShardMap& map, ShardId shard);

class RowTables {
 public:
  RowTables(Store& store, const ShardMap& map) : store_(store), map_(map) {}

  // The stored rows in [begin, end), with their hash codes.
  Result<ShardRows> read_range(ShardId shard, std::uint32_t begin, std::uint32_t end) const;

  // `rows` ascends and is within the shard.
  Result<SelectedRows> read_selected(ShardId shard, std::span<const std::uint32_t> rows) const;

  // A stored row, as visit_rows passes it.
  struct StoredRow {
    RowKey key;
    ByteView key_bytes;
    std::span<const std::uint8_t> values;  // little-endian floats: row_width values, then the state
  };

  // Visits every stored row of all shards in key order. Ends when `visit` fails.
  Result<void> visit_rows(const std::function<Result<void>(const StoredRow&)>& visit) const;
  // Visits the hash codes of all rows; kCodes holds nothing else.
  Result<void> visit_codes(
      const std::function<Result<void>(RowKey, std::span<const std::uint32_t>)>& visit) const;

  // Writes a row and returns its row_digest.
  Result<std::uint64_t> put(SortedWriter& writer, RowKey key, std::span<const float> values,
                            float state, std::span<const std::uint32_t> codes);

 private:
  Result<void> read_codes(ShardId shard, std::uint32_t begin, std::uint32_t end,
                          ShardRows& rows) const;
  // The row's payload, after a check that key and size fit the run.
  Result<ByteView> open_row(ByteView key_bytes, RowKey key, ByteView record) const;
  Result<void> open_codes(ByteView key_bytes, RowKey key, ByteView record,
                          std::vector<std::uint32_t>& codes) const;
  Result<RowKey> open_key(Table table, ByteView key_bytes) const;
  Result<void> select_by_scan(ShardId shard, std::span<const std::uint32_t> rows,
                              SelectedRows& selected) const;
  Result<void> select_by_get(ShardId shard, std::span<const std::uint32_t> rows,
                             SelectedRows& selected) const;
  Result<void> select(std::size_t index, ByteView key_bytes, RowKey key, ByteView record,
                      SelectedRows& selected) const;

  Store& store_;
  const ShardMap& map_;
  RecordWriter record_;
};

}  // namespace gleaner
