// The best of many, kept as a heap while they come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gleaner {

// Offers `found` to the `most` best so far, which are in no order. `comes_before(a, b)`: a is
// better.
template <typename T, typename ComesBefore>
void keep_best(std::vector<T>& best, std::size_t most, const T& found,
               const ComesBefore& comes_before) {
  if (best.size() == most) {
    // The front is the one to go first.
    if (best.empty() || !comes_before(found, best.front())) return;
    std::ranges::pop_heap(best, comes_before);
    best.pop_back();
  }
  best.push_back(found);
  std::ranges::push_heap(best, comes_before);
}

}  // namespace gleaner
