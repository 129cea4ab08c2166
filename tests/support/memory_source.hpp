// Bytes of a test as a data file without a folder, decompressed as a file is.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/data/byte_source.hpp"
#include "common/os/files.hpp"

namespace gleaner {

inline Result<std::unique_ptr<ByteSource>> open_memory_source(std::string name,
                                                              std::string_view bytes) {
  const int file = os::make_memory_file();
  GLEANER_CHECK(file >= 0 && os::write_at(file, 0, bytes.data(), bytes.size()));
  auto source = open_file_source("/proc/self/fd/" + std::to_string(file), std::move(name));
  os::close_file(file);
  return source;
}

}  // namespace gleaner
