// The envelope of every stored value: a format version, the payload, a checksum over both that is
// seeded with table and key, so that a value that lands under another's key is found out as well.
#pragma once

#include <cstdint>

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "storage/engine/tables.hpp"

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

}  // namespace gleaner
