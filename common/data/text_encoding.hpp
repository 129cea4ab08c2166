// Converts texts of any encoding to UTF-8.
#pragma once

#include <memory>
#include <string>

#include "common/data/byte_source.hpp"
#include "common/result.hpp"

namespace gleaner {

// The text of `source` as UTF-8 without a byte order mark. `encoding` is a name that iconv knows.
// If it is empty, a byte order mark or zero bytes identify UTF-16 and UTF-32; other text is UTF-8.
// kInvalidArgument for an unknown name. Reading fails with "FILE:LINE:COLUMN: expected ..." at
// bytes that are invalid in the encoding.
Result<std::unique_ptr<ByteSource>> as_utf8(std::unique_ptr<ByteSource> source,
                                            const std::string& encoding);

}  // namespace gleaner
