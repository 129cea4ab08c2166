// Where a large batch goes while it is being made; see Store::write_sorted.
#pragma once

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "storage/tables.hpp"

namespace gleaner {

class SortedWriter {
 public:
  virtual ~SortedWriter() = default;
  // Keys ascend within each table. After an error the batch is lost.
  virtual Result<void> put(Table table, ByteView key, ByteView value) = 0;
};

}  // namespace gleaner
