#include "volunteer/train/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/limits.hpp"
#include "common/natural_log.hpp"

namespace gleaner {
namespace {

constexpr double kNatsMax = 1024;
constexpr double kStepsPerNat = 1 << 20;

std::size_t example_of(ActivePair pair) {
  return pair & kPairExampleMask;
}

bool is_true(ActivePair pair) {
  return (pair & kTruePair) != 0;
}

std::int64_t loss_of(const SoftmaxScratch& scratch, std::uint32_t examples) {
  std::int64_t loss = 0;
  for (std::uint32_t e = 0; e < examples; ++e) {
    if (scratch.true_counts[e] == 0) continue;
    const double nats = static_cast<double>(scratch.largest[e]) + natural_log(scratch.sums[e]) -
                        scratch.true_logits[e] / scratch.true_counts[e];
    loss += std::llrint(std::clamp(nats, 0.0, kNatsMax) * kStepsPerNat);
  }
  return loss;
}

}  // namespace

std::int64_t softmax_deltas(const Kernels& kernels, const RowsTraining& work,
                            std::uint32_t examples, SoftmaxScratch& scratch) {
  const std::size_t pairs = work.row_count == 0 ? 0 : work.pair_ends[work.row_count - 1];
  scratch.largest.assign(examples, -std::numeric_limits<float>::max());
  scratch.sums.assign(examples, 0.0);
  scratch.true_logits.assign(examples, 0.0);
  scratch.true_counts.assign(examples, 0);
  for (std::size_t j = 0; j < pairs; ++j) {
    const std::size_t e = example_of(work.pairs[j]);
    scratch.largest[e] = std::max(scratch.largest[e], work.logits[j]);
    if (!is_true(work.pairs[j])) continue;
    scratch.true_logits[e] += static_cast<double>(work.logits[j]);
    ++scratch.true_counts[e];
  }
  const std::size_t padded = (pairs + kLanes - 1) / kLanes * kLanes;
  for (std::size_t j = 0; j < pairs; ++j) {
    work.deltas[j] = scratch.largest[example_of(work.pairs[j])] - work.logits[j];
  }
  std::fill(work.deltas + pairs, work.deltas + padded, 0.0F);
  kernels.exponential(work.deltas, work.deltas, padded);
  for (std::size_t j = 0; j < pairs; ++j) {
    if ((work.pairs[j] & kWeightedPair) != 0) work.deltas[j] *= work.pair_weight;
    scratch.sums[example_of(work.pairs[j])] += static_cast<double>(work.deltas[j]);
  }
  for (std::size_t j = 0; j < pairs; ++j) {
    const std::size_t e = example_of(work.pairs[j]);
    const std::uint32_t trues = scratch.true_counts[e];
    const double share = static_cast<double>(work.deltas[j]) / scratch.sums[e];
    const double target = is_true(work.pairs[j]) ? 1.0 / trues : 0.0;
    work.deltas[j] = trues == 0 ? 0.0F : static_cast<float>(share - target);
  }
  return loss_of(scratch, examples);
}

}  // namespace gleaner
