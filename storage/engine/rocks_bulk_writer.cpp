#include "storage/engine/rocks_bulk_writer.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

#include "storage/engine/rocks_options.hpp"

namespace gleaner {
namespace {

std::string folder_of(const std::string& store_path) {
  return store_path + "/incoming";
}

}  // namespace

RocksBulkWriter::RocksBulkWriter(rocksdb::DB& database,
                                 std::span<rocksdb::ColumnFamilyHandle* const> families,
                                 const std::string& store_path)
    : database_(database), families_(families), store_path_(store_path) {
  std::error_code error;
  std::filesystem::create_directories(folder_of(store_path_), error);
  if (!error) return;
  status_ = error == std::errc::no_space_on_device ? rocksdb::Status::NoSpace(error.message())
                                                   : rocksdb::Status::IOError(error.message());
}

RocksBulkWriter::~RocksBulkWriter() {
  for (TableFile& file : files_) file.writer.reset();
  clear_away(store_path_);
}

void RocksBulkWriter::clear_away(const std::string& store_path) {
  std::error_code error;  // a remaining file is overwritten
  std::filesystem::remove_all(folder_of(store_path), error);
}

void RocksBulkWriter::open(Table table) {
  const auto index = static_cast<std::size_t>(table);
  TableFile& file = files_[index];
  rocksdb::EnvOptions env_options;
  env_options.bytes_per_sync = 1 << 20;
  // The next fold reads these rows: they may stay in the page cache.
  file.writer = std::make_unique<rocksdb::SstFileWriter>(
      env_options, database_.GetOptions(families_[index]), families_[index],
      /*invalidate_page_cache=*/false);
  file.path = folder_of(store_path_) + "/" + table_name(table);
  status_ = file.writer->Open(file.path);
}

RocksBulkWriter::TableFile& RocksBulkWriter::file_of(Table table) {
  TableFile& file = files_[static_cast<std::size_t>(table)];
  if (status_.ok() && !file.writer) open(table);
  return file;
}

const rocksdb::Status& RocksBulkWriter::put(Table table, ByteView key, ByteView value) {
  TableFile& file = file_of(table);
  if (status_.ok()) status_ = file.writer->Put(to_slice(key), to_slice(value));
  return status_;
}

const rocksdb::Status& RocksBulkWriter::erase(Table table, ByteView key) {
  TableFile& file = file_of(table);
  if (status_.ok()) status_ = file.writer->Delete(to_slice(key));
  return status_;
}

const rocksdb::Status& RocksBulkWriter::finish() {
  std::vector<rocksdb::IngestExternalFileArg> arguments;
  for (std::size_t index = 0; index < kTableCount && status_.ok(); ++index) {
    if (!files_[index].writer) continue;
    status_ = files_[index].writer->Finish();  // synced
    rocksdb::IngestExternalFileArg& argument = arguments.emplace_back();
    argument.column_family = families_[index];
    argument.external_files = {files_[index].path};
    argument.options.move_files = true;
    argument.options.write_global_seqno = false;
  }
  // An earlier lazy write must not be lost while this batch survives.
  if (status_.ok()) status_ = database_.FlushWAL(/*sync=*/true);
  if (status_.ok() && !arguments.empty()) status_ = database_.IngestExternalFiles(arguments);
  return status_;
}

}  // namespace gleaner
