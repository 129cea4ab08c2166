#include "tools/python/csr_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

namespace gleaner {

Result<void> CsrRows::check(std::uint64_t width, std::uint64_t first, const char* what) const {
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
