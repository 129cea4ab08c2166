// A label and what the network says of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gleaner {

struct ScoredLabel {
  std::uint32_t label = 0;
  float logit = 0;
  friend bool operator==(const ScoredLabel&, const ScoredLabel&) = default;
};

// The part that a feature of an example has in a label's logit.
struct Contribution {
  std::uint32_t feature = 0;
  float value = 0;
  friend bool operator==(const Contribution&, const Contribution&) = default;
};

// The logistic function of each logit, to the same bits on every machine; of one that is not
// finite, any number.
std::vector<float> probabilities_of(std::span<const ScoredLabel> scored);

}  // namespace gleaner
