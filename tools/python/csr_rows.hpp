// Rows of a sparse matrix that somebody else owns, in CSR form, as the Python package hands them
// over: canonical (ascending columns, each once) and of these types. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/data/point_parser.hpp"
#include "common/result.hpp"

namespace gleaner {

struct CsrRows {
  std::span<const std::int64_t> offsets;  // rows + 1, from 0 on
  std::span<const std::uint32_t> columns;
  std::span<const float> values;  // parallel to columns; empty where only columns count

  [[nodiscard]] std::size_t rows() const { return offsets.size() - 1; }

  // kInvalidArgument unless the offsets ascend from 0 to the number of columns, and each row's
  // columns ascend and are below `width`, with finite values. `first` is the number of the first
  // row, and `what` the matrix, as messages name them.
  [[nodiscard]] Result<void> check(std::uint64_t width, std::uint64_t first,
                                   const char* what) const;

  [[nodiscard]] std::span<const std::uint32_t> columns_of(std::size_t row) const {
    return columns.subspan(static_cast<std::size_t>(offsets[row]), size_of(row));
  }

  [[nodiscard]] std::span<const float> values_of(std::size_t row) const {
    return values.subspan(static_cast<std::size_t>(offsets[row]), size_of(row));
  }

  // Without labels.
  [[nodiscard]] Point point(std::size_t row) const {
    const auto ids = columns_of(row);
    const auto numbers = values_of(row);
    return {{}, {ids.begin(), ids.end()}, {numbers.begin(), numbers.end()}};
  }

 private:
  [[nodiscard]] std::size_t size_of(std::size_t row) const {
    return static_cast<std::size_t>(offsets[row + 1] - offsets[row]);
  }
};

}  // namespace gleaner
