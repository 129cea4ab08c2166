#include <fmt/format.h>
#include <rocksdb/metadata.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>

#include <filesystem>
#include <utility>

#include "storage/engine/rocks_database.hpp"
#include "storage/engine/rocks_options.hpp"

namespace gleaner {

std::vector<TableSpace> rocks_space(rocksdb::DB& database,
                                    std::span<rocksdb::ColumnFamilyHandle* const> families) {
  std::vector<TableSpace> tables;
  for (std::size_t i = 0; i < families.size(); ++i) {
    rocksdb::ColumnFamilyMetaData data;
    database.GetColumnFamilyMetaData(families[i], &data);
    TableSpace space;
    space.table = static_cast<Table>(i);
    space.file_bytes = data.size;
    for (const rocksdb::LevelMetaData& level : data.levels) {
      if (level.files.empty()) continue;
      space.levels.push_back({level.level, level.files.size(), level.size});
    }
    // The manifest does not know this figure.
    rocksdb::TablePropertiesCollection files;
    if (database.GetPropertiesOfAllTables(families[i], &files).ok()) {
      for (const auto& [name, properties] : files) space.records += properties->num_entries;
    }
    database.GetIntProperty(families[i], rocksdb::DB::Properties::kCurSizeAllMemTables,
                            &space.newest_bytes);
    tables.push_back(std::move(space));
  }
  return tables;
}

std::vector<Error> check_table_files(const std::string& path, const std::vector<std::string>& names,
                                     rocksdb::Env& env) {
  std::vector<Error> damaged;
  rocksdb::Options options(rocks_reading_options(), rocks_column_families().front().options);
  options.env = &env;
  for (const std::string& name : names) {
    const std::string file = (std::filesystem::path(path) / name).string();
    rocksdb::SstFileReader reader(options);
    rocksdb::Status status = reader.Open(file);
    if (status.ok()) status = reader.VerifyChecksum();
    if (status.ok() || env.FileExists(file).IsNotFound()) continue;
    damaged.push_back(
        {ErrorCode::kCorrupt, fmt::format("the file {} is damaged: {}", name, status.ToString())});
  }
  return damaged;
}

}  // namespace gleaner
