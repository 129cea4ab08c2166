// The table of kernels, which are written once over a vector of sixteen floats: training,
// projections and vector loops in the files that this one includes, exact scores and commits here.
// Each instruction set's file defines `Vec` in gleaner's unnamed namespace and then includes this
// file, so that all levels share the order of operations and none shares machine code. README.md
// states the orders.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/kernels/kernel_projections.hpp"
#include "common/kernels/kernel_training.hpp"
#include "common/kernels/kernel_vectors.hpp"
#include "common/kernels/kernels.hpp"
#include "common/model/row_delta.hpp"

namespace gleaner {
namespace {

// ---- Exact scores ------------------------------------------------------------------------------

// Four rows against four examples.
void score_tile(const ScoreBlock& block, std::size_t r, std::size_t e) {
  const float* w = block.weights + r * block.width;
  const float* h = block.hidden + e * block.width;
  Vec sums[4][4];
  for (auto& of_example : sums) {
    for (Vec& sum : of_example) sum = Vec::zero();
  }
  for (std::size_t i = 0; i < block.width; i += kWidth) {
    const Vec rows[4] = {Vec::load(w + i), Vec::load(w + block.width + i),
                         Vec::load(w + 2 * block.width + i), Vec::load(w + 3 * block.width + i)};
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k) {
      const Vec x = Vec::load(h + k * block.width + i);
#pragma GCC unroll 4
      for (std::size_t l = 0; l < 4; ++l) sums[k][l] = Vec::fma(rows[l], x, sums[k][l]);
    }
  }
  for (std::size_t k = 0; k < 4; ++k) {
    float* out = block.scores + (e + k) * block.score_stride + r;
    Vec::reduce4(sums[k][0], sums[k][1], sums[k][2], sums[k][3], kOnes, block.biases + r, out);
  }
}

void score_one(const ScoreBlock& block, std::size_t r, std::size_t e) {
  const float product =
      dot_kernel(block.weights + r * block.width, block.hidden + e * block.width, block.width);
  block.scores[e * block.score_stride + r] = product + block.biases[r];
}

void score_rows_kernel(const ScoreBlock& block) {
  const std::size_t whole_rows = block.rows - block.rows % 4;
  const std::size_t whole_examples = block.examples - block.examples % 4;
  for (std::size_t r = 0; r < whole_rows; r += 4) {
    for (std::size_t e = 0; e < whole_examples; e += 4) score_tile(block, r, e);
    for (std::size_t e = whole_examples; e < block.examples; ++e) {
      for (std::size_t k = 0; k < 4; ++k) score_one(block, r + k, e);
    }
  }
  for (std::size_t r = whole_rows; r < block.rows; ++r) {
    for (std::size_t e = 0; e < block.examples; ++e) score_one(block, r, e);
  }
}

// ---- Commits -----------------------------------------------------------------------------------

float largest_difference(const float* a, const float* b, std::size_t n) {
  Vec largest = Vec::broadcast(0.0F);
  for (std::size_t i = 0; i < n; i += kWidth) {
    const Vec difference = Vec::sub(Vec::load(a + i), Vec::load(b + i));
    largest = Vec::max(largest, Vec::max(difference, Vec::negate(difference)));
  }
  float lanes[kWidth];
  largest.store(lanes);
  float result = 0.0F;
  for (const float lane : lanes) result = lane > result ? lane : result;
  return result;
}

float round_delta_kernel(const float* committed, float* values, std::int8_t* levels,
                         std::size_t n) {
  float largest = largest_difference(values, committed, n);
  if (largest < kDeltaMin) {
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = committed[i];
      levels[i] = 0;
    }
    return 0.0F;
  }
  if (largest > kDeltaMax) largest = kDeltaMax;
  const float scale = largest / static_cast<float>(kDeltaLevelMax);
  const Vec per_scale = Vec::broadcast(static_cast<float>(kDeltaLevelMax) / largest);
  const Vec high = Vec::broadcast(static_cast<float>(kDeltaLevelMax));
  const Vec low = Vec::negate(high);
  // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even.
  const Vec magic = Vec::broadcast(12582912.0F);
  for (std::size_t i = 0; i < n; i += kWidth) {
    const Vec base = Vec::load(committed + i);
    const Vec scaled = Vec::mul(Vec::sub(Vec::load(values + i), base), per_scale);
    const Vec clamped = Vec::max(Vec::min(scaled, high), low);
    const Vec rounded = Vec::sub(Vec::add(clamped, magic), magic);
    std::int32_t whole[kWidth];
    rounded.store_rounded(whole);
    for (std::size_t l = 0; l < kWidth; ++l) levels[i + l] = static_cast<std::int8_t>(whole[l]);
    Vec::add(base, Vec::mul(Vec::broadcast(scale), rounded)).store(values + i);
  }
  return scale;
}

constexpr Kernels make_kernels(SimdLevel level) {
  return {.level = level,
          .dot = dot_kernel,
          .axpy = axpy_kernel,
          .sum_of_squares = sum_of_squares_kernel,
          .rms_steps = rms_steps_kernel,
          .dequantise = dequantise_kernel,
          .round_gradient = round_gradient_kernel,
          .logistic = logistic_kernel,
          .train_rows = train_rows_kernel,
          .score_rows = score_rows_kernel,
          .project_codes = project_codes_kernel,
          .project_rows = project_rows_kernel,
          .round_delta = round_delta_kernel};
}

}  // namespace
}  // namespace gleaner
