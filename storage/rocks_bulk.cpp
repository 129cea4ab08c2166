#include "storage/rocks_bulk.hpp"

#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "storage/rocks_options.hpp"

namespace gleaner {
namespace {

using rocksdb::Status;

// One table's file while it is being written.
struct TableFile {
  std::unique_ptr<rocksdb::SstFileWriter> writer;
  std::string path;
};

}  // namespace

RocksBulkWriter::RocksBulkWriter(rocksdb::DB& database,
                                 std::span<rocksdb::ColumnFamilyHandle* const> families,
                                 const std::string& store_path)
    : database_(database), families_(families), folder_(store_path + "/incoming") {
  std::error_code error;  // what stays is written over, and write() reports what cannot be
  std::filesystem::remove_all(folder_, error);
}

bool RocksBulkWriter::can_write(const WriteBatch& batch) {
  std::array<ByteView, kTableCount> last;
  std::array<bool, kTableCount> has_last{};
  bool is_sorted = true;
  batch.visit([&](Table table, ByteView key, std::optional<ByteView> value) {
    const auto index = static_cast<std::size_t>(table);
    if (!value.has_value() ||
        (has_last[index] && !std::ranges::lexicographical_compare(last[index], key))) {
      is_sorted = false;
    }
    last[index] = key;
    has_last[index] = true;
  });
  return is_sorted;
}

Status RocksBulkWriter::write(WriteBatch& batch) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  std::array<TableFile, kTableCount> files;
  Status status;
  batch.consume([&](Table table, ByteView key, std::optional<ByteView> value) {
    if (!status.ok()) return;
    const auto index = static_cast<std::size_t>(table);
    TableFile& file = files[index];
    if (!file.writer) {
      rocksdb::EnvOptions env_options;
      env_options.bytes_per_sync = 1 << 20;
      // The next fold reads these rows: they may stay in the page cache.
      file.writer = std::make_unique<rocksdb::SstFileWriter>(
          env_options, database_.GetOptions(families_[index]), families_[index],
          /*invalidate_page_cache=*/false);
      file.path = folder_ + "/" + table_name(table);
      status = file.writer->Open(file.path);
      if (!status.ok()) return;
    }
    status = file.writer->Put(to_slice(key), to_slice(*value));
  });

  std::vector<rocksdb::IngestExternalFileArg> arguments;
  for (std::size_t index = 0; index < kTableCount && status.ok(); ++index) {
    if (!files[index].writer) continue;
    status = files[index].writer->Finish();  // synced
    rocksdb::IngestExternalFileArg& argument = arguments.emplace_back();
    argument.column_family = families_[index];
    argument.external_files = {files[index].path};
    argument.options.move_files = true;
    argument.options.write_global_seqno = false;
  }
  // What was written lazily before must not be lost where this is not.
  if (status.ok()) status = database_.FlushWAL(/*sync=*/true);
  if (status.ok() && !arguments.empty()) status = database_.IngestExternalFiles(arguments);
  return status;
}

}  // namespace gleaner
