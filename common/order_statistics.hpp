// Medians, and the best of many values. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

// The upper of the two middle values if their number is even. Requires at least one value.
inline double median(std::vector<double> values) {
  GLEANER_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The median of some values, and the median without one of them.
class Medians {
 public:
  explicit Medians(std::vector<double> values) : sorted_(std::move(values)) {
    std::sort(sorted_.begin(), sorted_.end());
  }

  // Nullopt without values.
  [[nodiscard]] std::optional<double> all() const {
    return sorted_.empty() ? std::nullopt : std::optional(sorted_[sorted_.size() / 2]);
  }

  // The median without one value that equals `value`; nullopt without other values. Requires such a
  // value.
  [[nodiscard]] std::optional<double> without(double value) const {
    if (sorted_.size() < 2) return std::nullopt;
    const auto place = std::lower_bound(sorted_.begin(), sorted_.end(), value) - sorted_.begin();
    const std::size_t middle = (sorted_.size() - 1) / 2;
    return sorted_[middle < static_cast<std::size_t>(place) ? middle : middle + 1];
  }

 private:
  std::vector<double> sorted_;
};

// Offers `found` to the heap `best` of at most `most` values. `comes_before(a, b)` means that a is
// better.
template <typename T, typename ComesBefore>
void keep_best(std::vector<T>& best, std::size_t most, const T& found,
               const ComesBefore& comes_before) {
  if (best.size() == most) {
    // The front is the worst of the best.
    if (best.empty() || !comes_before(found, best.front())) return;
    std::ranges::pop_heap(best, comes_before);
    best.pop_back();
  }
  best.push_back(found);
  std::ranges::push_heap(best, comes_before);
}

}  // namespace gleaner
