// A small run in a store of RocksDB, and the files of its folder.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/engine/rocks_store.hpp"
#include "storage/run_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {

inline std::unique_ptr<RunStore> open_run(const std::string& path,
                                          std::size_t bulk_bytes = kRocksBulkBytes) {
  const RunIdentity identity = test::small_identity();
  auto store =
      test::require_value(open_rocks_store(path, OpenMode::kReadWrite, {.bulk_bytes = bulk_bytes}));
  return test::require_value(
      RunStore::create_or_open(std::move(store), identity, test::small_label_counts(identity)));
}

inline std::string digest_of(const std::string& path) {
  auto store = test::require_value(open_rocks_store(path, OpenMode::kReadOnly));
  return test::require_value(
      test::require_value(RunStore::open(std::move(store)))->checkpoint_digest());
}

// Name, size and time of change of everything in a folder.
inline std::map<std::string, std::pair<std::uintmax_t, std::filesystem::file_time_type>> listing(
    const std::string& path) {
  std::map<std::string, std::pair<std::uintmax_t, std::filesystem::file_time_type>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    files[entry.path().string()] = {entry.is_regular_file() ? entry.file_size() : 0,
                                    entry.last_write_time()};
  }
  return files;
}

inline std::vector<std::filesystem::path> files_with(const std::string& path,
                                                     const std::string& extension) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == extension) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace gleaner
