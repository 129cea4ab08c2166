// The envelope of every stored value: a format version, the payload, a checksum over both that is
// seeded with table and key, so that a value that lands under another's key is found out as well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "storage/engine/store.hpp"
#include "storage/keys.hpp"

namespace gleaner {

inline constexpr std::uint8_t kRecordVersion = 1;
inline constexpr std::size_t kRecordHeaderBytes = 1;
inline constexpr std::size_t kRecordChecksumBytes = 8;

// Builds one record after another in the same memory.
class RecordWriter {
 public:
  // Room for a payload of `bytes`, to be filled before seal(). Ends the previous record.
  std::uint8_t* begin(std::size_t bytes);
  // The whole record; valid until the next begin().
  ByteView seal(Table table, ByteView key);

 private:
  Bytes record_;
};

Bytes seal_record(Table table, ByteView key, ByteView payload);

// The payload within `record`. kCorrupt and kVersion name table and key.
Result<ByteView> open_record(Table table, ByteView key, ByteView record);

// kCorrupt: `what` is wrong with a record whose checksum holds.
Error corrupt_record(Table table, ByteView key, const char* what);

// Adds a JSON record to `batch`.
void put_text(WriteBatch& batch, Table table, ByteView key, const std::string& text);
Result<void> put_text(SortedWriter& writer, Table table, ByteView key, const std::string& text);
// The text of a record; nullopt when there is none.
Result<std::optional<std::string>> get_text(Store& store, Table table, ByteView key);

}  // namespace gleaner
