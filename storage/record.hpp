// The envelope of every stored value: a format version, the payload, and a checksum over both.
// Table and key seed the checksum, so a value stored under another value's key is detected.
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

// Builds records one after another in the same memory.
class RecordWriter {
 public:
  // Returns memory for a payload of `bytes`, to be filled before seal(). Ends the previous record.
  std::uint8_t* begin(std::size_t bytes);
  // The whole record; valid until the next begin().
  ByteView seal(Table table, ByteView key);

 private:
  Bytes record_;
};

Bytes seal_record(Table table, ByteView key, ByteView payload);

// The payload within `record`. kCorrupt and kVersion name table and key.
Result<ByteView> open_record(Table table, ByteView key, ByteView record);

// The error kCorrupt for a record whose checksum holds but whose content is wrong.
Error corrupt_record(Table table, ByteView key, const char* what);

// Adds a JSON record to `batch`.
void put_text(WriteBatch& batch, Table table, ByteView key, const std::string& text);
Result<void> put_text(SortedWriter& writer, Table table, ByteView key, const std::string& text);
// The text of a record; nullopt when there is none.
Result<std::optional<std::string>> get_text(Store& store, Table table, ByteView key);

}  // namespace gleaner
