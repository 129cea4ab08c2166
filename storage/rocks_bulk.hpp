// Large batches past RocksDB's log: one sorted file a table, written once and then taken over by
// all tables in one atomic change of the manifest. A fold through the log would be written twice
// (log and table) and held in memory once more, and the log would be replayed at every opening.
// Included by rocks_*.cpp only.
#pragma once

#include <rocksdb/db.h>

#include <span>
#include <string>

#include "storage/write_batch.hpp"

namespace gleaner {

class RocksBulkWriter {
 public:
  // `families` by table. Removes what an earlier process left half written.
  RocksBulkWriter(rocksdb::DB& database, std::span<rocksdb::ColumnFamilyHandle* const> families,
                  const std::string& store_path);

  // True when each table's keys ascend, as a sorted file needs, and nothing is deleted.
  static bool can_write(const WriteBatch& batch);

  // Requires can_write(batch). Durable when it returns ok, as is everything written before.
  rocksdb::Status write(WriteBatch& batch);

 private:
  rocksdb::DB& database_;
  std::span<rocksdb::ColumnFamilyHandle* const> families_;
  std::string folder_;
};

}  // namespace gleaner
