#include "storage/engine/rocks_options.hpp"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <cerrno>
#include <cstdarg>
#include <system_error>

#include "common/os/files.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kBlockCacheBytes = 64 * kMebibyte;
constexpr std::uint64_t kWalBytesMax = 128 * kMebibyte;

// RocksDB would write its info log to the store's folder, and if that fails, on a full disk for
// example, an assertion in RocksDB ends the process. Every status has the error anyway.
class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;

  void Logv(const char*, std::va_list) override {}
};

// RocksDB copies files where links are not supported, and knows that case by one errno alone. FAT
// and SMB say EPERM.
class PerhapsWithoutLinks : public rocksdb::FileSystemWrapper {
 public:
  using rocksdb::FileSystemWrapper::FileSystemWrapper;

  const char* Name() const override { return "PerhapsWithoutLinks"; }

  rocksdb::IOStatus LinkFile(const std::string& source, const std::string& target,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
    auto status = rocksdb::FileSystemWrapper::LinkFile(source, target, options, debug);
    const bool is_refused = status.IsIOError() && !status.IsNoSpace();
    return is_refused ? rocksdb::IOStatus::NotSupported(status.ToString()) : status;
  }
};

// Outlives all databases, as the default one does.
rocksdb::Env* environment() {
  static const std::unique_ptr<rocksdb::Env> made = rocksdb::NewCompositeEnv(
      std::make_shared<PerhapsWithoutLinks>(rocksdb::FileSystem::Default()));
  return made.get();
}

rocksdb::ColumnFamilyOptions column_family_options(Table table,
                                                   const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions block;
  block.block_cache = cache;
  block.block_size = 16 << 10;
  block.format_version = 5;
  // Floats hardly compress (tests/bench/REJECTED.md), commits live for seconds; the rest is small.
  const bool is_text = table == Table::kRun || table == Table::kHistory || table == Table::kLedger;
  options.compression = is_text ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
  options.bottommost_compression = options.compression;
  options.level_compaction_dynamic_level_bytes = true;
  options.write_buffer_size = 4 * kMebibyte;
  if (table == Table::kRows || table == Table::kCodes) {
    // The filter answers lookups of rows that training never touched.
    block.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options.write_buffer_size = 32 * kMebibyte;
    options.target_file_size_base = 64 * kMebibyte;
    options.max_bytes_for_level_base = 512 * kMebibyte;
  }
  if (table == Table::kStaged) options.write_buffer_size = 64 * kMebibyte;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(block));
  return options;
}

}  // namespace

std::vector<rocksdb::ColumnFamilyDescriptor> rocks_column_families() {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (std::size_t table = 0; table < kTableCount; ++table) {
    families.emplace_back(kTableNames[table],
                          column_family_options(static_cast<Table>(table), cache));
  }
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  return families;
}

rocksdb::DBOptions rocks_database_options() {
  rocksdb::DBOptions options;
  options.env = environment();
  options.max_background_jobs = 2;
  // Written continuously in small steps, so that a sync finds little left to write.
  options.bytes_per_sync = kMebibyte;
  options.wal_bytes_per_sync = kMebibyte;
  options.max_total_wal_size = kWalBytesMax;
  options.avoid_flush_during_recovery = true;
  // A torn record at the end was never acknowledged. Any other damage of the log stops the program,
  // because skipping it would silently lose commits.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.info_log = std::make_shared<NoLog>();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  return options;
}

rocksdb::DBOptions rocks_reading_options() {
  rocksdb::DBOptions options = rocks_database_options();
  options.max_open_files = -1;  // holds every table open, so that none can be removed under it
  return options;
}

bool is_out_of_room(const rocksdb::Status& status) {
  if (status.IsNoSpace()) return true;
  // RocksDB has no code for a quota, only the system's message.
  return status.IsIOError() &&
         status.ToString().find(std::generic_category().message(EDQUOT)) != std::string::npos;
}

Error rocks_error(const rocksdb::Status& status, const std::string& path, const char* doing) {
  const std::string what = status.ToString();
  if (is_out_of_room(status)) {
    return {ErrorCode::kDiskFull,
            fmt::format("there is no room on the disk for the store {} ({}): {}; nothing that was "
                        "acknowledged is lost",
                        path, what, os::room_remedy(status.IsNoSpace() ? ENOSPC : EDQUOT, path))};
  }
  if (status.IsMemoryLimit()) {
    return {ErrorCode::kResources,
            fmt::format("there is too little memory for {} the store {} ({})", doing, path, what)};
  }
  if (status.IsCorruption() || status.IsPathNotFound()) {
    return {ErrorCode::kCorrupt,
            fmt::format("the store {} is damaged ({}): restore it from a backup (gleaner restore "
                        "--help), or train again into an empty folder",
                        path, what)};
  }
  return {ErrorCode::kIo, fmt::format("{} the store {} failed: {}", doing, path, what)};
}

}  // namespace gleaner
