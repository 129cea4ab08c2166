// Rows of a sparse matrix that somebody else owns, in CSR form, as the Python package hands them
// over: canonical (ascending columns, each once) and of these types. Plain values.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

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

inline Result<void> CsrRows::check(std::uint64_t width, std::uint64_t first,
                                   const char* what) const {
  const auto refuse = [what](const std::string& why) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", what, why)};
  };
  const bool is_whole = !offsets.empty() && offsets.front() == 0 &&
                        std::ranges::is_sorted(offsets) &&
                        offsets.back() == static_cast<std::int64_t>(columns.size()) &&
                        (values.empty() || values.size() == columns.size());
  if (!is_whole) return refuse("its indptr, indices and data do not fit each other");
  for (std::size_t row = 0; row < rows(); ++row) {
    const auto ids = columns_of(row);
    const auto falls = std::ranges::adjacent_find(ids, std::greater_equal());
    if (falls != ids.end()) {
      return refuse(fmt::format("row {}: column {} is not below the next one, {}", first + row,
                                falls[0], falls[1]));
    }
    if (!ids.empty() && ids.back() >= width) {
      return refuse(fmt::format("row {}: column {} of {}", first + row, ids.back(), width));
    }
    if (values.empty()) continue;
    const auto numbers = values_of(row);
    const auto odd = std::ranges::find_if(numbers, [](float v) { return !std::isfinite(v); });
    if (odd != numbers.end()) {
      return refuse(fmt::format("row {}, column {}: {} is not a number of 32 bits", first + row,
                                ids[static_cast<std::size_t>(odd - numbers.begin())], *odd));
    }
  }
  return {};
}

}  // namespace gleaner
