#include "storage/record.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstddef>
#include <cstring>

namespace gleaner {
namespace {

std::uint64_t checksum_of(Table table, ByteView key, ByteView content) {
  const XXH64_hash_t seed =
      XXH3_64bits_withSeed(key.data(), key.size(), static_cast<XXH64_hash_t>(table));
  return XXH3_64bits_withSeed(content.data(), content.size(), seed);
}

// The checksum stored in the record.
std::uint64_t record_checksum(ByteView record) {
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, record.data() + record.size() - sizeof checksum, sizeof checksum);
  return checksum;
}

}  // namespace

std::uint8_t* RecordWriter::begin(std::size_t bytes) {
  record_.resize(kRecordHeaderBytes + bytes + kRecordChecksumBytes);
  record_[0] = kRecordVersion;
  return record_.data() + kRecordHeaderBytes;
}

ByteView RecordWriter::seal(Table table, ByteView key) {
  const std::size_t content_bytes = record_.size() - kRecordChecksumBytes;
  const std::uint64_t checksum = checksum_of(table, key, ByteView(record_).first(content_bytes));
  std::memcpy(record_.data() + content_bytes, &checksum, sizeof checksum);
  return record_;
}

Bytes seal_record(Table table, ByteView key, ByteView payload) {
  RecordWriter writer;
  std::uint8_t* target = writer.begin(payload.size());
  if (!payload.empty()) std::memcpy(target, payload.data(), payload.size());
  const ByteView record = writer.seal(table, key);
  return {record.begin(), record.end()};
}

Result<ByteView> open_record(Table table, ByteView key, ByteView record) {
  if (record.size() < kRecordHeaderBytes + kRecordChecksumBytes) {
    return corrupt_record(table, key, "it is cut short");
  }
  const ByteView content = record.first(record.size() - kRecordChecksumBytes);
  if (checksum_of(table, key, content) != record_checksum(record)) {
    return corrupt_record(table, key, "its checksum does not match");
  }
  // Checked after the checksum, so that a flipped bit is not taken for another version.
  if (record[0] != kRecordVersion) {
    return Error{
        ErrorCode::kVersion,
        fmt::format("the record for {} in table '{}' has format version {}, and this "
                    "program reads version {}: use the version of Gleaner that wrote it",
                    describe_key(table, key), table_name(table), record[0], kRecordVersion)};
  }
  return content.subspan(kRecordHeaderBytes);
}

Error corrupt_record(Table table, ByteView key, const char* what) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("the record for {} in table '{}' is damaged: {}; restore the store "
                           "from a backup (gleaner restore --help), or train again into an empty "
                           "folder",
                           describe_key(table, key), table_name(table), what)};
}

void put_text(WriteBatch& batch, Table table, ByteView key, const std::string& text) {
  batch.put(table, key, seal_record(table, key, as_bytes(text)));
}

Result<void> put_text(SortedWriter& writer, Table table, ByteView key, const std::string& text) {
  return writer.put(table, key, seal_record(table, key, as_bytes(text)));
}

Result<std::optional<std::string>> get_text(Store& store, Table table, ByteView key) {
  const Result<std::optional<Bytes>> record = store.get(table, key);
  if (!record) return record.error();
  if (!record->has_value()) return std::optional<std::string>();
  const Result<ByteView> payload = open_record(table, key, **record);
  if (!payload) return payload.error();
  return std::optional<std::string>(as_text(*payload));
}

}  // namespace gleaner
