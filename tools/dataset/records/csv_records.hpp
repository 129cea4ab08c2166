// Texts with tags out of CSV (RFC 4180) and TSV. The separator is the one at which the first row,
// cut, has all columns that are wanted; Excel's line "sep=;" may say it before.
#pragma once

#include <memory>

#include "tools/dataset/records/text_records.hpp"

namespace gleaner {

// `source` is UTF-8.
Result<std::unique_ptr<TextRecords>> open_csv_records(std::unique_ptr<ByteSource> source,
                                                      const RecordOptions& options,
                                                      const TextFields& fields);

}  // namespace gleaner
