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

// Reads the table files of these names in the folder whole: data, index and filter. One error a
// file that is damaged; a file that is gone was merged into others by the store's writer.
std::vector<Error> check_table_files(const std::string& path, const std::vector<std::string>& names,
                                     rocksdb::Env& env = *rocksdb::Env::Default());

}  // namespace gleaner
