#include "volunteer/train/wide/unit_lengths.hpp"

#include <algorithm>
#include <cmath>

namespace gleaner {

UnitLengths::UnitLengths(std::span<const ExampleView> examples, std::uint32_t features) {
  std::size_t count = 0;
  for (const ExampleView& example : examples) count += example.features.size();
  values_.reserve(count);  // views into it are made below: it must not move
  views_.reserve(examples.size());
  for (const ExampleView& example : examples) {
    // Features ascend, so unknown ones are the last.
    const auto known = static_cast<std::size_t>(
        std::ranges::lower_bound(example.features, features) - example.features.begin());
    const auto values = example.values.first(known);
    // In double and in the order of the features, so that the bits are the same everywhere.
    double squares = 0;
    for (const float value : values) squares += double{value} * double{value};
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    const std::size_t first = values_.size();
    for (const float value : values) values_.push_back(static_cast<float>(double{value} * scale));
    views_.push_back({{}, example.features.first(known), {values_.data() + first, known}});
  }
}

}  // namespace gleaner
