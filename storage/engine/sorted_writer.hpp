// A large batch that is written while it is being made; see Store::begin_sorted.
#pragma once

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "storage/engine/tables.hpp"

namespace gleaner {

class SortedWriter {
 public:
  // Without finish(), nothing has been written.
  virtual ~SortedWriter() = default;
  // Keys ascend within each table. After an error the batch is lost.
  virtual Result<void> put(Table table, ByteView key, ByteView value) = 0;
  virtual Result<void> erase(Table table, ByteView key) = 0;
  // Everything that was put is in the store when it returns ok, with kSync. Once.
  virtual Result<void> finish() = 0;
};

}  // namespace gleaner
