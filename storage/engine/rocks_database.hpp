// The Store on a RocksDB that is open.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/engine/held_folder.hpp"
#include "storage/engine/rocks_options.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

// Notes that RocksDB's own threads ran out of room. Called on those threads.
class RoomWatch : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    if (is_out_of_room(*error)) ran_out_ = true;
  }

  [[nodiscard]] bool ran_out() const { return ran_out_; }

 private:
  std::atomic<bool> ran_out_{false};
};

class RocksStore : public Store {
 public:
  using Families = std::vector<rocksdb::ColumnFamilyHandle*>;

  // A read-only store. `env` belongs to a backup, and finds the backup's files.
  RocksStore(std::string path, std::unique_ptr<rocksdb::DB> database, Families families,
             std::shared_ptr<rocksdb::Env> env = nullptr);
  RocksStore(std::shared_ptr<const HeldFolder> folder, const RocksStoreOptions& writing,
             std::shared_ptr<RoomWatch> watch, std::unique_ptr<rocksdb::DB> database,
             Families families);
  ~RocksStore() override;
  RocksStore(const RocksStore&) = delete;
  RocksStore& operator=(const RocksStore&) = delete;

  Result<std::optional<Bytes>> get(Table table, ByteView key) override;
  Result<void> scan(Table table, ByteView begin, ByteView end,
                    const std::function<bool(ByteView, ByteView)>& visit) override;
  Result<void> write(WriteBatch batch, Durability durability) override;
  Result<std::unique_ptr<SortedWriter>> begin_sorted(std::uint64_t bytes) override;
  Result<void> erase_range(Table table, ByteView begin, ByteView end,
                           Durability durability) override;
  Result<void> check_room(std::uint64_t bytes) override;
  Result<std::string> snapshot() override;
  Result<std::vector<TableSpace>> space() override;
  std::vector<Error> damaged_files() override;

 private:
  class SortedFiles;

  // Returns the path. If a file cannot be removed, the next snapshot fails.
  std::string remove_snapshot();
  Result<void> check_writable(std::uint64_t bytes);
  [[nodiscard]] Error failed_before() const;
  Result<void> outcome_of(const rocksdb::Status& written);
  // If the folder is not at its path, that explains most errors in it.
  [[nodiscard]] Error error(const rocksdb::Status& status, const char* doing) const;
  // From now on the content of the disk is unknown.
  Error unsure(Error error);
  rocksdb::ColumnFamilyHandle* family(Table table);
  rocksdb::Status write_through_log(WriteBatch& batch, Durability durability);

  std::string path_;
  std::shared_ptr<const HeldFolder> folder_;  // of a writer; must outlive the database
  std::shared_ptr<rocksdb::Env> env_;         // outlives the database; null for the machine's own
  std::optional<RocksStoreOptions> writing_;
  std::shared_ptr<RoomWatch> watch_;
  std::unique_ptr<rocksdb::DB> database_;
  Families families_;  // by table, then the default one
  bool has_failed_ = false;
};

// `families` by table.
std::vector<TableSpace> rocks_space(rocksdb::DB& database,
                                    std::span<rocksdb::ColumnFamilyHandle* const> families);

// Reads these table files completely: data, index and filter. One error per damaged file. The
// store's writer may have merged a missing file into others.
std::vector<Error> check_table_files(const std::string& path, const std::vector<std::string>& names,
                                     rocksdb::Env& env = *rocksdb::Env::Default());

}  // namespace gleaner
