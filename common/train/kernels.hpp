// The arithmetic of the hot loops, one table of functions per instruction set. Every table gives
// the same bits: README.md writes down the one order of operations that each kernel has.
//
// Plain pointers rather than spans, and no library calls in the kernels' files: an inline function
// compiled there with AVX flags could be the copy the linker keeps for the whole program, and would
// then crash on a processor without AVX.
//
// Widths n are multiples of 16 (kLanes); no alignment is required. Stateless; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"

namespace gleaner {

// The instruction sets the kernels are written for, and which of them this machine and its user
// want. All levels compute the same bits; the level only decides how fast. Any thread.
enum class SimdLevel : std::uint8_t {
  kScalar = 0,  // portable C++: the reference, and what other architectures run
  kAvx2 = 1,    // AVX2, FMA and F16C
  kAvx512 = 2,  // AVX-512 F, BW, DQ and VL
};

// "scalar", "avx2" or "avx512".
const char* simd_level_name(SimdLevel level);
Result<SimdLevel> parse_simd_level(std::string_view name);

// The levels that this build and this processor can run, ascending; kScalar is always there.
std::vector<SimdLevel> available_simd_levels();

// `requested` is the value of GLEANER_SIMD, empty when it is not set: then the best available
// level. The error for an unknown or unavailable level says what is available.
Result<SimdLevel> choose_simd_level(std::string_view requested);

// choose_simd_level of the environment's GLEANER_SIMD. Programs call it once at start-up, to report
// its error before anything else happens.
Result<SimdLevel> simd_level_from_environment();

// A row's first gradient counts this much in its state. With 1 - decay = 0.001 in its place the
// first step would be thirty times the rate, which unsettles labels with few examples; with 1
// (a full correction of the bias) rare labels learn too slowly. Figures in
// tests/bench/RESULTS.md.
inline constexpr float kFirstFraction = 0.1F;

// The row-wise second-moment rule: state = decay * state + (1 - decay) * mean(g^2), then
// w -= rate * g / (sqrt(state) + epsilon).
struct RmsRule {
  float rate = 0;
  float decay = 0;
  float decay_complement = 0;  // 1 - decay, rounded once by whoever fills this in
  float first_fraction = 0;    // takes its place while the state is zero: see kFirstFraction
  float epsilon = 0;
};

// Rows whose steps are computed together.
inline constexpr std::size_t kRowsPerStep = 16;

// A (neuron, example) pair of a neuron's list: the example's position in the batch, and a bit that
// says whether the neuron is one of its true labels.
using ActivePair = std::uint16_t;
inline constexpr ActivePair kTruePair = 0x8000;
inline constexpr ActivePair kPairExampleMask = 0x7fff;

// Work of some neurons on one batch: forward, loss, backward, update. Several at a time, so that
// the logistic functions of all their pairs fill whole vectors.
struct RowsTraining {
  std::size_t width = 0;                // n
  float* weights = nullptr;             // of row 0; rows are n apart; updated
  float* biases = nullptr;              // by row, updated
  float* states = nullptr;              // by row, updated
  const std::uint32_t* rows = nullptr;  // rows to train, ascending
  std::size_t row_count = 0;
  std::size_t rows_after = 0;  // further entries of rows, which the next call trains: fetched
  const std::size_t* pair_ends = nullptr;  // parallel to rows: end of the row's list in `pairs`
  const ActivePair* pairs = nullptr;       // lists ascend by example; 16 more are readable
  // h = scale * code, with codes from -127 to 127 in two's complement. The codes rather than h, as
  // those of a batch fit the first cache level.
  const std::uint8_t* codes = nullptr;  // examples x n
  const float* scales = nullptr;        // examples
  // examples x n: each pair adds its share, in units: see kGradientGuardBits.
  std::uint32_t* gradient_sums = nullptr;
  float gradient_magic = 0;    // gradient_magic() of the step
  float* logits = nullptr;     // scratch: 16 more than there are pairs
  float* deltas = nullptr;     // scratch: the same
  float* gradients = nullptr;  // scratch: kRowsPerStep x n
};

// Gradients with respect to the activations are summed in integers modulo 2^32, so that neurons may
// be summed in any order and grouping. A pair's share delta * w is rounded to a multiple of a unit,
// the gradient step / 2^kGradientGuardBits: adding 1.5 * 2^23 units to the share rounds it, and
// leaves the multiple in the float's lowest bits. What is summed are these floats' bits; the
// addend's own are taken off at the end. A share of 2^22 units or more (a weight beyond 64, with a
// step of 2^-10) makes the sum useless, but the same on every machine.
inline constexpr int kGradientGuardBits = 6;
float gradient_magic(int gradient_step_log2);

// Ends a shard's part of an example's gradient: see Kernels::round_gradient.
struct GradientRounding {
  std::size_t width = 0;                 // n
  std::uint32_t* const* sums = nullptr;  // some arrays of n
  std::size_t sum_count = 0;             // of these, one at least
  std::uint32_t addend = 0;              // the bits that pairs added besides their shares
  std::uint32_t* check = nullptr;        // 16: a checksum
};

// A block of exact scores: scores[e * score_stride + r] = dot(row r, example e) + bias r.
struct ScoreBlock {
  std::size_t width = 0;           // n
  const float* weights = nullptr;  // rows x n
  const float* biases = nullptr;   // rows
  std::size_t rows = 0;
  const float* hidden = nullptr;  // examples x n
  std::size_t examples = 0;
  float* scores = nullptr;
  std::size_t score_stride = 0;  // >= rows
};

// Instructions that multiply bytes want one factor unsigned: a code plus this is 1 to 255.
inline constexpr std::int32_t kCodeOffset = 128;
inline constexpr int kCodeOffsets = 0x8080;  // flipping these bits adds it to each of two codes

// Random +-1 projections, what SimHash takes signs of: projection p = q * block + k of a vector is
// the k-th entry of its Walsh-Hadamard transform after the q-th choice of signs flipped its
// columns, the sum over columns i of (-1)^popcount(k & i) * flips[q * block + i] * x[i]. Those of
// one q are orthogonal to each other, and a row's take block * log2(block) additions rather than
// block^2.
struct SignProjections {
  std::size_t width = 0;               // n
  std::size_t block = 0;               // the power of two from n and 32 on
  std::size_t count = 0;               // of projections, a multiple of block
  const float* flips = nullptr;        // count: +1 or -1
  const std::int8_t* pairs = nullptr;  // n/2 x count x 2: the same signs, of columns 2i and 2i + 1
  // count: kCodeOffset times the sum of the projection's signs.
  const std::int32_t* thresholds = nullptr;
};

// A pair of a neuron and an example, as a step of one pair needs it.
struct PairStep {
  float probability = 0;  // that the pair is true
  float delta = 0;        // derivative of the loss by the score
  float loss = 0;         // nats
};

// The arithmetic of one loss.
struct LossKernels {
  // Probabilities of pairs with scores x, and their losses if they are not true. Logistic:
  // sigmoid(x) and softplus(x) = log(1 + e^x), with e^-|x| held at its value for |x| = 64 beyond.
  void (*curves)(const float* x, float* probabilities, float* losses, std::size_t n);
  PairStep (*pair)(float score, bool is_true);
  // Forward, loss, backward and update. Returns the loss in 2^-20 nats: each pair's is rounded, and
  // at most 1024 nats.
  std::int64_t (*train_rows)(const RowsTraining& work, const RmsRule& rule);
};

struct Kernels {
  SimdLevel level;

  // Sum of a[i] * b[i].
  float (*dot)(const float* a, const float* b, std::size_t n);
  // y[i] = fma(a, x[i], y[i]).
  void (*axpy)(float a, const float* x, float* y, std::size_t n);
  // Sum of x[i]^2.
  float (*sum_of_squares)(const float* x, std::size_t n);
  // The rule for kRowsPerStep rows at once, whose gradients' sums of squares over n values are
  // given: moves their states and writes the factors by which gradients are added to the rows.
  void (*rms_steps)(const RmsRule& rule, const float* squares, std::size_t n, float* states,
                    float* factors);

  // values[i] = scale * codes[i].
  void (*dequantise)(float scale, const std::uint8_t* codes, float* values, std::size_t n);
  // Adds up the arrays less the addend, rounded to whole gradient steps (halves up), in the first
  // of them; the others are zero afterwards. Since what was there before is whole, what is added to
  // it is rounded by itself. check[l] becomes the sum of the entries i with i % 16 = l, each times
  // an odd number that depends on i; so it is linear in what was added.
  void (*round_gradient)(const GradientRounding& work);

  LossKernels losses[static_cast<std::size_t>(Loss::kCount)];  // by Loss

  void (*score_rows)(const ScoreBlock& block);

  // bits[p] (of 16-bit words, lowest first) = the p-th projection of `codes` is positive.
  void (*project_codes)(const SignProjections& projections, const std::uint8_t* codes,
                        std::uint16_t* bits);
  // Does the same for `count` rows of floats; row r's words begin at bits + r * (projections.count
  // / 16).
  void (*project_rows)(const SignProjections& projections, const float* const* rows,
                       std::size_t count, std::uint16_t* bits);

  // levels[i] = the difference values[i] - committed[i] in multiples of the scale returned, which
  // makes the largest difference kDeltaLevelMax; values[i] = committed[i] + scale * levels[i]. The
  // scale is 0, and the values are the committed ones, when no difference reaches kDeltaMin
  // (common/model/shard_rows.hpp). Values are finite.
  float (*round_delta)(const float* committed, float* values, std::int8_t* levels, std::size_t n);

  // The input layer spends its time here. For i = 0 .. count - 1 in this order, for every column
  // j < width: sum[j] = fma(factors[i], rows[picks[i] * stride + j], sum[j]). All pointers are to
  // 64-byte-aligned data; stride is a multiple of 16.
  void (*add_rows)(const float* rows, std::size_t stride, const std::uint32_t* picks,
                   const float* factors, std::size_t count, float* sum, std::size_t width);
};

// The table of an available level (see available_simd_levels).
const Kernels& kernels_for(SimdLevel level);

// The table of simd_level_from_environment, or of the level that set_default_level chose; programs
// have reported the environment's error before.
const Kernels& default_kernels();

// The arithmetic of the model's loss.
const LossKernels& loss_kernels(const Kernels& kernels, const ModelConfig& model);

// For programs at start-up, before anything computes: self_test.hpp.
void set_default_level(SimdLevel level);

// The tables of kernels, one a file; kernels_for chooses. Private to this folder.
const Kernels& scalar_kernels();
#if defined(GLEANER_X86_KERNELS)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

}  // namespace gleaner
