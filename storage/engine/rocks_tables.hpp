// The tables' files: the room that they take, and whether they are whole.
#pragma once

#include <rocksdb/db.h>

#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "storage/engine/store.hpp"

namespace gleaner {

// `families` by table.
std::vector<TableSpace> rocks_space(rocksdb::DB& database,
                                    std::span<rocksdb::ColumnFamilyHandle* const> families);

// Reads these table files completely: data, index and filter. One error per damaged file. The
// store's writer may have merged a missing file into others.
std::vector<Error> check_table_files(const std::string& path, const std::vector<std::string>& names,
                                     rocksdb::Env& env = *rocksdb::Env::Default());

}  // namespace gleaner
