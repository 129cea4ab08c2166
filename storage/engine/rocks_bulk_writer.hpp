// Writes large batches past RocksDB's log: one sorted file per table, written as the batch is
// built, and then added to all tables by one atomic change of the manifest. A fold through the log
// would be held in memory, written twice (log and table), and replayed at every opening.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>

#include <array>
#include <memory>
#include <span>
#include <string>

#include "storage/engine/store.hpp"

namespace gleaner {

class RocksBulkWriter {
 public:
  // `families` by table. Borrows both.
  RocksBulkWriter(rocksdb::DB& database, std::span<rocksdb::ColumnFamilyHandle* const> families,
                  const std::string& store_path);
  // Removes the files that the database has not taken over.
  ~RocksBulkWriter();
  RocksBulkWriter(const RocksBulkWriter&) = delete;
  RocksBulkWriter& operator=(const RocksBulkWriter&) = delete;

  // After a failure, returns that failure.
  const rocksdb::Status& put(Table table, ByteView key, ByteView value);
  const rocksdb::Status& erase(Table table, ByteView key);
  // When it returns ok, the batch is in the database and durable, as is everything written before.
  const rocksdb::Status& finish();

  // Removes the unfinished files of a killed process.
  static void clear_away(const std::string& store_path);

 private:
  struct TableFile {
    std::unique_ptr<rocksdb::SstFileWriter> writer;
    std::string path;
  };

  void open(Table table);
  // Opens the file at first use; the opening may fail.
  TableFile& file_of(Table table);

  rocksdb::DB& database_;
  std::span<rocksdb::ColumnFamilyHandle* const> families_;
  std::string store_path_;
  std::array<TableFile, kTableCount> files_;
  rocksdb::Status status_;
};

}  // namespace gleaner
