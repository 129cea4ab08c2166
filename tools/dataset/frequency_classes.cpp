#include "tools/dataset/frequency_classes.hpp"

#include <algorithm>
#include <numeric>

namespace gleaner {

namespace {

constexpr double kHeadShare = 0.5;
constexpr double kTailShare = 0.1;

}  // namespace

FrequencyClasses::FrequencyClasses(std::span<const std::uint32_t> label_counts)
    : classes_(label_counts.size()) {
  std::vector<std::uint32_t> order(label_counts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order,
                           [&](auto a, auto b) { return label_counts[a] > label_counts[b]; });
  double total = 0;
  for (const std::uint32_t count : label_counts) total += count;
  double before = 0;  // occurrences of labels that are more frequent
  for (const std::uint32_t label : order) {
    const std::uint32_t count = label_counts[label];
    auto own = FrequencyClass::kTorso;
    if (before >= (1 - kTailShare) * total) own = FrequencyClass::kTail;
    if (before < kHeadShare * total) own = FrequencyClass::kHead;
    before += count;
    classes_[label] = own;
    Extent& extent = extents_[static_cast<std::size_t>(own)];
    if (extent.labels++ == 0) extent.points_max = count;
    extent.points_min = count;
  }
}

}  // namespace gleaner
