// Points one after the other out of a data set in any form, in constant memory and without making
// a cache.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/data/packed_dataset.hpp"
#include "common/data/text_reader.hpp"
#include "common/result.hpp"

namespace gleaner {

class PointStream {
 public:
  static Result<std::unique_ptr<PointStream>> open(const std::string& path,
                                                   const TextOptions& options);

  // False at the end.
  Result<bool> next(Point& point);

  // Known from the start, except for libsvm text.
  [[nodiscard]] std::optional<std::uint64_t> announced_points() const;
  // For libsvm text, of what has been read.
  [[nodiscard]] Dimensions dimensions() const;
  [[nodiscard]] Irregularities irregularities() const;
  // "XC text", "libsvm text" or "packed".
  [[nodiscard]] const char* form() const;

  // Null unless packed.
  [[nodiscard]] const PackedDataset* packed() const { return packed_.get(); }

  // How far reading has come, in units that only their quotient matters of.
  [[nodiscard]] std::uint64_t position() const;
  [[nodiscard]] std::uint64_t total() const;

 private:
  PointStream() = default;

  std::unique_ptr<TextReader> text_;  // one of the two
  std::unique_ptr<PackedDataset> packed_;
  std::uint64_t next_ = 0;
};

struct SetSize {
  std::uint64_t points = 0;
  Dimensions dimensions;
};

// The size that the form announces; a form that does not is read to its end for it.
Result<SetSize> size_of_set(const std::string& path, const TextOptions& options);

// Makes `text` refuse ids beyond those of the set `like`, which may have another form; an empty
// name changes nothing.
Result<void> take_limits(const std::string& like, TextOptions& text);

}  // namespace gleaner
