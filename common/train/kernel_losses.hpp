// The losses over whole vectors of pairs, a pair being a neuron and an example. Included by
// kernel_bodies.hpp, as it is: once a level, with that level's `Vec`. For each row NAME of
// GLEANER_LOSSES (common/model/model_config.hpp) there is a struct NAMELoss, with the members of
// LogisticLoss. A loss sees one pair at a time, and so needs no sum over an example's neurons.
#pragma once

#include <cstddef>

#include "common/train/kernel_vectors.hpp"
#include "common/train/kernels.hpp"

namespace gleaner {
namespace {

// e^-x for x in [0, 64]: x = k ln 2 + r with |r| <= ln 2 / 2, then Taylor's polynomial of degree 7,
// whose remainder is below 2^-27 there.
Vec exp_of_negative(Vec x) {
  // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
  const Vec magic = Vec::broadcast(12582912.0F);
  const Vec k = Vec::sub(Vec::fma(x, Vec::broadcast(-1.44269504F), magic), magic);
  // ln 2 in two parts; k * high is exact because `high` has 9 significant bits to spare.
  Vec r = Vec::fma(k, Vec::broadcast(-0.693359375F), Vec::negate(x));
  r = Vec::fma(k, Vec::broadcast(2.12194440e-4F), r);
  Vec p = Vec::broadcast(1.0F / 5040.0F);
  p = Vec::fma(p, r, Vec::broadcast(1.0F / 720.0F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F / 120.0F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F / 24.0F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F / 6.0F));
  p = Vec::fma(p, r, Vec::broadcast(0.5F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F));
  p = Vec::fma(p, r, Vec::broadcast(1.0F));
  return Vec::mul(p, Vec::power_of_two(k));
}

// log(1 + t) for t in [0, 1]: 2 artanh(u) with u = t / (2 + t) <= 1/3, by its series up to u^17,
// whose remainder is below 2^-31 of the value.
Vec log_of_one_plus(Vec t) {
  const Vec u = Vec::div(t, Vec::add(Vec::broadcast(2.0F), t));
  const Vec s = Vec::mul(u, u);
  Vec p = Vec::broadcast(2.0F / 17.0F);
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 15.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 13.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 11.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 9.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 7.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 5.0F));
  p = Vec::fma(p, s, Vec::broadcast(2.0F / 3.0F));
  const Vec twice = Vec::add(u, u);
  return Vec::fma(Vec::mul(p, s), u, twice);
}

// Probabilities of pairs, or the sizes of their derivatives, and their losses in nats.
struct LossCurves {
  Vec slope;
  Vec nats;
};

// One-vs-all: every pair is a logistic regression. KERNELS.md has its error.
struct LogisticLoss {
  // Gives the probability that a pair of score x is true, and its loss if it is not.
  static LossCurves of_scores(Vec x) {
    const Vec zero = Vec::zero();
    const Vec one = Vec::broadcast(1.0F);
    const Vec magnitude = Vec::min(Vec::max(x, Vec::negate(x)), Vec::broadcast(64.0F));
    const Vec t = exp_of_negative(magnitude);
    const Vec numerator = Vec::select_negative(x, t, one);
    return {Vec::div(numerator, Vec::add(one, t)), Vec::add(Vec::max(x, zero), log_of_one_plus(t))};
  }

  // Gives the size of the derivative by the score z, and the loss. A margin is -z of a true pair
  // and z of another, so that nothing cancels.
  static LossCurves of_margins(Vec m) { return of_scores(m); }

  static PairStep of_pair(float probability, float loss, float score, bool is_true) {
    return {probability, probability - (is_true ? 1.0F : 0.0F), loss - (is_true ? score : 0.0F)};
  }
};

template <typename PairLoss>
void curves_kernel(const float* x, float* probabilities, float* losses, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kWidth) {
    const LossCurves curves = PairLoss::of_scores(Vec::load(x + i));
    curves.slope.store(probabilities + i);
    curves.nats.store(losses + i);
  }
}

// Uses one lane of a vector, since each pair of a neuron sees the update of the pair before.
template <typename PairLoss>
PairStep pair_kernel(float score, bool is_true) {
  float lanes[kWidth] = {score};
  float losses[kWidth];
  curves_kernel<PairLoss>(lanes, lanes, losses, kWidth);
  return PairLoss::of_pair(lanes[0], losses[0], score, is_true);
}

}  // namespace
}  // namespace gleaner
