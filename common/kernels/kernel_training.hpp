// Training of rows of the output layer: logits, gradients and updates of one batch. Included by
// kernel_bodies.hpp: once a level, with that level's `Vec`.
//
// Loops over arrays of vectors that shall live in registers are unrolled by pragma: without it, GCC
// unrolls them too late to keep the arrays out of memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/kernels/kernel_logistic.hpp"
#include "common/kernels/kernel_vectors.hpp"
#include "common/kernels/kernels.hpp"

namespace gleaner {
namespace {

// One row of the work.
struct RowView {
  float* weights;
  const ActivePair* pairs;
  std::size_t count;
  float* logits;
  float* deltas;
};

RowView row_view(const RowsTraining& work, std::size_t index) {
  const std::size_t begin = index == 0 ? 0 : work.pair_ends[index - 1];
  return {work.weights + work.rows[index] * work.width, work.pairs + begin,
          work.pair_ends[index] - begin, work.logits + begin, work.deltas + begin};
}

// z = scale * (w c) + b of `Count` pairs of the row, at most four, side by side to hide latency.
// Writes four logits.
template <std::size_t Count>
void some_logits(const RowsTraining& work, const RowView& row, std::size_t first, float bias) {
  const std::uint8_t* codes[Count];
  float scales[4] = {};
#pragma GCC unroll 4
  for (std::size_t e = 0; e < Count; ++e) {
    const std::size_t example = row.pairs[first + e] & kPairExampleMask;
    codes[e] = work.codes + example * work.width;
    scales[e] = work.scales[example];
  }
  Vec sums[4] = {Vec::zero(), Vec::zero(), Vec::zero(), Vec::zero()};
  for (std::size_t i = 0; i < work.width; i += kWidth) {
    const Vec w = Vec::load(row.weights + i);
#pragma GCC unroll 4
    for (std::size_t e = 0; e < Count; ++e) {
      sums[e] = Vec::fma(w, Vec::load_codes(codes[e] + i), sums[e]);
    }
  }
  const float biases[4] = {bias, bias, bias, bias};
  Vec::reduce4(sums[0], sums[1], sums[2], sums[3], scales, biases, row.logits + first);
}

void row_logits(const RowsTraining& work, const RowView& row, float bias) {
  std::size_t j = 0;
  for (; j + 4 <= row.count; j += 4) some_logits<4>(work, row, j, bias);
  switch (row.count - j) {
    case 1:
      return some_logits<1>(work, row, j, bias);
    case 2:
      return some_logits<2>(work, row, j, bias);
    case 3:
      return some_logits<3>(work, row, j, bias);
    default:
      return;
  }
}

// deltas = sigmoid(z) - y of all pairs, and their loss. With the margin m = -z for true pairs and z
// for others, the loss is softplus(m) and |delta| = sigmoid(m): no cancellation.
std::int64_t pair_deltas(const RowsTraining& work, std::size_t pairs) {
  std::int64_t loss = 0;
  for (std::size_t j = 0; j < pairs; j += kWidth) {
    const Vec z = Vec::load(work.logits + j);
    const Logistic result = logistic_of(Vec::negate_true(z, work.pairs + j));
    Vec::negate_true(result.sigmoid, work.pairs + j).store(work.deltas + j);
    const Vec nats = Vec::min(result.softplus, Vec::broadcast(1024.0F));
    const std::size_t left = pairs - j;
    loss += Vec::mul(nats, Vec::broadcast(1048576.0F)).sum_rounded(left < kWidth ? left : kWidth);
  }
  return loss;
}

// Backward over `Blocks` vectors of the row's columns, which stay in registers over its examples:
// the row's gradient, and its share of its examples' gradients by the weights as they are.
template <std::size_t Blocks>
void row_backward(const RowsTraining& work, const RowView& row, std::size_t column,
                  float* gradient) {
  const Vec magic = Vec::broadcast(work.gradient_magic);
  Vec w[Blocks];
  Vec g[Blocks];
#pragma GCC unroll 8
  for (std::size_t k = 0; k < Blocks; ++k) {
    w[k] = Vec::load(row.weights + column + k * kWidth);
    g[k] = Vec::zero();
  }
  for (std::size_t j = 0; j < row.count; ++j) {
    const std::size_t example = row.pairs[j] & kPairExampleMask;
    const Vec delta = Vec::broadcast(row.deltas[j]);
    const Vec step = Vec::broadcast(row.deltas[j] * work.scales[example]);
    const std::size_t offset = example * work.width + column;
    const std::uint8_t* codes = work.codes + offset;
    std::uint32_t* sums = work.gradient_sums + offset;
#pragma GCC unroll 8
    for (std::size_t k = 0; k < Blocks; ++k) {
      g[k] = Vec::fma(step, Vec::load_codes(codes + k * kWidth), g[k]);
      Vec::fma(delta, w[k], magic).add_bits(sums + k * kWidth);
    }
  }
#pragma GCC unroll 8
  for (std::size_t k = 0; k < Blocks; ++k) g[k].store(gradient + column + k * kWidth);
}

void row_gradients(const RowsTraining& work, const RowView& row, float* gradient) {
  constexpr std::size_t kBlocks = Vec::kBackwardBlocks;
  std::size_t column = 0;
  for (; column + kBlocks * kWidth <= work.width; column += kBlocks * kWidth) {
    row_backward<kBlocks>(work, row, column, gradient);
  }
  for (; column < work.width; column += kWidth) row_backward<1>(work, row, column, gradient);
}

[[gnu::always_inline]] inline void forward_rows(const RowsTraining& work) {
  for (std::size_t r = 0; r < work.row_count; ++r) {
    if (r + kPrefetchRows < work.row_count) {
      const float* ahead = work.weights + work.rows[r + kPrefetchRows] * work.width;
      for (std::size_t i = 0; i < work.width; i += kWidth) __builtin_prefetch(ahead + i, 1);
    }
    row_logits(work, row_view(work, r), work.biases[work.rows[r]]);
  }
}

constexpr float kOnes[4] = {1.0F, 1.0F, 1.0F, 1.0F};
constexpr float kNoBiases[4] = {};

// Sums of squares of `count` gradients, at most kRowsPerStep, by four side by side to hide latency;
// those of further ones up to a multiple of four are of whatever is there.
void gradient_squares(const float* gradients, std::size_t width, std::size_t count,
                      float* squares) {
  for (std::size_t k = 0; k < count; k += 4) {
    const float* own = gradients + k * width;
    Vec sums[4] = {Vec::zero(), Vec::zero(), Vec::zero(), Vec::zero()};
    for (std::size_t i = 0; i < width; i += kWidth) {
#pragma GCC unroll 4
      for (std::size_t r = 0; r < 4; ++r) {
        const Vec g = Vec::load(own + r * width + i);
        sums[r] = Vec::fma(g, g, sums[r]);
      }
    }
    Vec::reduce4(sums[0], sums[1], sums[2], sums[3], kOnes, kNoBiases, squares + k);
  }
}

// Gradients, updates and biases of at most kRowsPerStep rows from `first` on.
void train_some_rows(const RowsTraining& work, std::size_t first, std::size_t count,
                     const RmsRule& rule) {
  float bias_gradients[kRowsPerStep];
  float squares[kRowsPerStep] = {};
  float states[kRowsPerStep] = {};
  float factors[kRowsPerStep];
  for (std::size_t k = 0; k < count; ++k) {
    // The next call's rows travel from memory to the second level behind this arithmetic.
    if (first + k < work.rows_after) {
      const float* ahead = work.weights + work.rows[work.row_count + first + k] * work.width;
      for (std::size_t i = 0; i < work.width; i += kWidth) __builtin_prefetch(ahead + i, 0, 2);
    }
    const RowView row = row_view(work, first + k);
    float* gradient = work.gradients + k * work.width;
    row_gradients(work, row, gradient);
    float bias_gradient = 0;
    for (std::size_t j = 0; j < row.count; ++j) bias_gradient += row.deltas[j];
    bias_gradients[k] = bias_gradient;
    states[k] = work.states[work.rows[first + k]];
  }
  gradient_squares(work.gradients, work.width, count, squares);
  for (std::size_t k = 0; k < count; ++k) {
    squares[k] = Vec::fma_one(bias_gradients[k], bias_gradients[k], squares[k]);
  }
  rms_steps_kernel(rule, squares, work.width + 1, states, factors);
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint32_t row = work.rows[first + k];
    work.states[row] = states[k];
    work.biases[row] = Vec::fma_one(factors[k], bias_gradients[k], work.biases[row]);
    axpy_kernel(factors[k], work.gradients + k * work.width, work.weights + row * work.width,
                work.width);
  }
}

[[gnu::always_inline]] inline void backward_rows(const RowsTraining& work, const RmsRule& rule) {
  for (std::size_t first = 0; first < work.row_count; first += kRowsPerStep) {
    const std::size_t left = work.row_count - first;
    train_some_rows(work, first, left < kRowsPerStep ? left : kRowsPerStep, rule);
  }
}

// A row is read by nobody but itself within a batch, so all rows may go forward before any of them
// goes backward.
std::int64_t train_rows_kernel(const RowsTraining& work, const RmsRule& rule) {
  if (work.row_count == 0) return 0;
  forward_rows(work);
  const std::int64_t loss = pair_deltas(work, work.pair_ends[work.row_count - 1]);
  backward_rows(work, rule);
  return loss;
}

}  // namespace
}  // namespace gleaner
