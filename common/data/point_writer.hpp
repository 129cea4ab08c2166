// Writes text files: examples in the XC Repository's form and libsvm's, names, tables. Compresses
// if the name ends in .gz or .zst. A file appears when it is complete. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/data/atomic_file.hpp"
#include "common/data/point_parser.hpp"
#include "common/result.hpp"

namespace gleaner {

class TextOutput {
 public:
  static Result<std::unique_ptr<TextOutput>> create(const std::string& path);
  ~TextOutput();
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;

  Result<void> write(std::string_view text);
  Result<void> commit(AtomicFile::Existing existing);

 private:
  struct Compressor;
  TextOutput(std::unique_ptr<AtomicFile> file, std::unique_ptr<Compressor> compressor);

  Result<void> compress(bool is_last);

  std::unique_ptr<AtomicFile> file_;
  std::unique_ptr<Compressor> compressor_;  // null for plain text
  std::string pending_;
};

// "points features labels" and a line end.
std::string xc_header(std::uint64_t points, Dimensions dimensions);

// Appends the example's line. `first_feature` is the id of feature 0: 0 in XC text. Values are the
// shortest decimals that read back as the same float.
void append_libsvm(std::string& text, const Point& point, std::uint32_t first_feature);

}  // namespace gleaner
