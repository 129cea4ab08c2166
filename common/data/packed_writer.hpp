// Writes a packed file example by example in constant memory. One owner; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/atomic_file.hpp"
#include "common/data/packed_format.hpp"
#include "common/data/point_parser.hpp"
#include "common/result.hpp"

namespace gleaner {

class PackedWriter {
 public:
  // With `normalize`, every row is scaled to unit length (rows without features stay empty).
  static Result<std::unique_ptr<PackedWriter>> create(const std::string& path, bool normalize);

  // `point` must have ascending ids and finite values, as a parser ensures.
  Result<void> add(const Point& point);

  // `dimensions` must cover all ids. `key` identifies the source and may be empty.
  Result<void> finish(Dimensions dimensions, const Irregularities& irregularities,
                      const std::string& key, AtomicFile::Existing existing);

  [[nodiscard]] std::uint64_t points() const { return header_.points; }

 private:
  PackedWriter(std::unique_ptr<AtomicFile> rows, std::unique_ptr<AtomicFile> index, bool normalize);

  Result<void> end_block();
  Result<void> append_index();

  std::unique_ptr<AtomicFile> rows_;   // becomes the packed file
  std::unique_ptr<AtomicFile> index_;  // row offsets, appended at the end; never committed
  bool normalize_;
  packed::Header header_{};
  ChecksumStream content_;
  ChecksumStream block_rows_;
  std::vector<std::uint64_t> block_offsets_;  // of the block's rows, and their end
  std::vector<std::uint64_t> blocks_;
  std::vector<float> values_;
  std::vector<std::uint32_t> row_;
};

// Divides by the Euclidean length: the sum of squares in double, in order; one correctly rounded
// division and one rounding to float per value. The same bits on every machine.
void normalize_row(std::vector<float>& values);

}  // namespace gleaner
