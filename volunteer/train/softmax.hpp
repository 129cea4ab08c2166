// The loss softmax over each example's active neurons, as SLIDE trains (arXiv 1903.03129, section
// 3): p = e^z / Z with Z the sum over the active ones, and a target of 1/k for each of k true
// labels. A neuron that was drawn at random and stands for w of them counts w times in Z. One
// thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "common/kernels/kernels.hpp"

namespace gleaner {

// By example; reused from batch to batch.
struct SoftmaxScratch {
  std::vector<float> largest;       // logit
  std::vector<double> sums;         // of w e^(z - largest)
  std::vector<double> true_logits;  // their sum
  std::vector<std::uint32_t> true_counts;
};

// From the logits of all pairs of `work`, writes their deltas, w p - target, and returns the loss
// in 2^-20 nats: for each example -log p averaged over its true labels, rounded, and at most 1024
// nats. Examples without a true label have deltas and a loss of 0. Sums go over an example's
// neurons in ascending order.
std::int64_t softmax_deltas(const Kernels& kernels, const RowsTraining& work,
                            std::uint32_t examples, SoftmaxScratch& scratch);

}  // namespace gleaner
