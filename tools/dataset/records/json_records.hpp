// Texts with tags out of JSON objects: one a line, printed over several lines, or in an array.
#pragma once

#include <memory>

#include "tools/dataset/records/text_records.hpp"

namespace gleaner {

// `source` is UTF-8. A field "a.b" is the field b of the object in a, or of each object in its
// list.
Result<std::unique_ptr<TextRecords>> open_json_records(std::unique_ptr<ByteSource> source,
                                                       const TextFields& fields);

}  // namespace gleaner
