// The logistic function and its loss. Included by kernel_training.hpp: once a level, with that
// level's `Vec`. README.md has its error.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/kernels/kernel_vectors.hpp"
#include "common/kernels/kernels.hpp"

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

struct Logistic {
  Vec sigmoid;
  Vec softplus;
};

Logistic logistic_of(Vec x) {
  const Vec zero = Vec::zero();
  const Vec one = Vec::broadcast(1.0F);
  const Vec magnitude = Vec::min(Vec::max(x, Vec::negate(x)), Vec::broadcast(64.0F));
  const Vec t = exp_of_negative(magnitude);
  const Vec numerator = Vec::select_negative(x, t, one);
  return {Vec::div(numerator, Vec::add(one, t)), Vec::add(Vec::max(x, zero), log_of_one_plus(t))};
}

void logistic_kernel(const float* x, float* sigmoid, float* softplus, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kWidth) {
    const Logistic result = logistic_of(Vec::load(x + i));
    result.sigmoid.store(sigmoid + i);
    result.softplus.store(softplus + i);
  }
}

}  // namespace
}  // namespace gleaner
