// The table of kernels, written once over `Vec`, a vector of sixteen floats. kernel_vectors.hpp has
// the vector loops, the logistic function and the projections; this file has training, exact scores
// and commits. Each instruction set's file defines `Vec` in an unnamed namespace and then includes
// this file: all levels share the order of operations, and none shares machine code. KERNELS.md
// states the orders.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/model/shard_rows.hpp"
#include "common/train/kernel_vectors.hpp"
#include "common/train/kernels.hpp"

namespace gleaner {

// Training of rows of the output layer: logits, gradients and updates of one batch.
//
// Pragmas unroll the loops over arrays of vectors that must stay in registers: GCC itself unrolls
// them too late to keep the arrays out of memory.

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
// Always writes four logits.
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

// deltas = the derivatives by the scores z of all pairs, positive unless a pair is true. Returns
// the pairs' loss.
template <typename PairLoss>
std::int64_t pair_deltas(const RowsTraining& work, std::size_t pairs) {
  std::int64_t loss = 0;
  for (std::size_t j = 0; j < pairs; j += kWidth) {
    const Vec z = Vec::load(work.logits + j);
    const LossCurves curves = PairLoss::of_margins(Vec::negate_true(z, work.pairs + j));
    Vec::negate_true(curves.slope, work.pairs + j).store(work.deltas + j);
    const Vec nats = Vec::min(curves.nats, Vec::broadcast(1024.0F));
    const std::size_t left = pairs - j;
    loss += Vec::mul(nats, Vec::broadcast(1048576.0F)).sum_rounded(left < kWidth ? left : kWidth);
  }
  return loss;
}

// Backward over `Blocks` vectors of the row's columns, which stay in registers over all examples:
// computes the row's gradient, and adds to its examples' gradients by the weights before the
// update.
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

// Sums of squares of `count` gradients, at most kRowsPerStep, four side by side to hide latency.
// Squares beyond `count`, up to a multiple of four, are computed from unspecified values.
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

// Gradients, updates and biases of `count` rows (at most kRowsPerStep) from row `first` on.
void train_some_rows(const RowsTraining& work, std::size_t first, std::size_t count,
                     const RmsRule& rule) {
  float bias_gradients[kRowsPerStep];
  float squares[kRowsPerStep] = {};
  float states[kRowsPerStep] = {};
  float factors[kRowsPerStep];
  for (std::size_t k = 0; k < count; ++k) {
    // Brings the rows of the next call from memory to the second cache level during this
    // arithmetic.
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

// Within a batch no row reads another row, so all rows may go forward before any row goes backward.
template <typename PairLoss>
std::int64_t train_rows_kernel(const RowsTraining& work, const RmsRule& rule) {
  if (work.row_count == 0) return 0;
  forward_rows(work);
  const std::int64_t loss = pair_deltas<PairLoss>(work, work.pair_ends[work.row_count - 1]);
  backward_rows(work, rule);
  return loss;
}

}  // namespace

// The losses over whole vectors of pairs, a pair being a neuron and an example. Included by
// kernel_bodies.hpp, as it is: once a level, with that level's `Vec`. For each row NAME of
// GLEANER_LOSSES (common/model/model_config.hpp) there is a struct NAMELoss, with the members of
// LogisticLoss. A loss sees one pair at a time, and so needs no sum over an example's neurons.

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

#define GLEANER_LOSS_KERNELS(name) \
  {curves_kernel<name##Loss>, pair_kernel<name##Loss>, train_rows_kernel<name##Loss>},

constexpr Kernels make_kernels(SimdLevel level) {
  return {.level = level,
          .dot = dot_kernel,
          .axpy = axpy_kernel,
          .sum_of_squares = sum_of_squares_kernel,
          .rms_steps = rms_steps_kernel,
          .dequantise = dequantise_kernel,
          .round_gradient = round_gradient_kernel,
          .losses = {GLEANER_LOSSES(GLEANER_LOSS_KERNELS)},
          .score_rows = score_rows_kernel,
          .project_codes = project_codes_kernel,
          .project_rows = project_rows_kernel,
          .round_delta = round_delta_kernel,
          .add_rows = add_rows_kernel};
}

#undef GLEANER_LOSS_KERNELS

}  // namespace

}  // namespace gleaner
