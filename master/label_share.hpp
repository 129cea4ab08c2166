// What training points say beside a network: each label's part of their votes, and the mean of that
// and of what the network says (mixing the two: Khandelwal et al., arXiv 1911.00172).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "master/scored_label.hpp"

namespace gleaner {

// A label's part of the votes, 0 to 1.
struct LabelShare {
  std::uint32_t label = 0;
  float share = 0;
  friend bool operator==(const LabelShare&, const LabelShare&) = default;
};

// The points whose votes are asked for. They are read more than once, one after the other or label
// by label.
struct TrainingPoints {
  std::uint32_t count = 0;
  std::uint32_t features = 0;  // ids are below
  std::function<ExampleView(std::uint32_t point)> at;
};

// Those of a packed set, which outlives them. Requires at most 2^32 - 1 points.
TrainingPoints training_points(const PackedDataset& points);

// The mean of what the network and the voters take for a label's probability, the latter of
// `weight` between 0 and 1, as its logit: the `top_k` best of both lists, by descending
// probability, of equals the smaller label first. A label that one of them does not name has no
// probability there, so `network` should go far beyond `top_k`: kTopKMax where there are so many.
// Entries of `network` that are not finite count as not named.
std::vector<ScoredLabel> mixed_with_votes(std::span<const ScoredLabel> network,
                                          std::span<const LabelShare> votes, float weight,
                                          std::uint32_t top_k);

}  // namespace gleaner
