#include "master/predict/scored_label.hpp"

#include <cmath>

#include "common/kernels/kernels.hpp"
#include "common/limits.hpp"

namespace gleaner {

std::vector<float> probabilities_of(std::span<const ScoredLabel> scored) {
  // Whole vectors of lanes, as the kernels want them.
  const std::size_t padded = (scored.size() + kLanes - 1) / kLanes * kLanes;
  std::vector<float> logits(padded);
  std::vector<float> probabilities(padded);
  std::vector<float> losses(padded);
  for (std::size_t i = 0; i < scored.size(); ++i) {
    if (std::isfinite(scored[i].logit)) logits[i] = scored[i].logit;
  }
  default_kernels().logistic(logits.data(), probabilities.data(), losses.data(), padded);
  probabilities.resize(scored.size());
  return probabilities;
}

}  // namespace gleaner
