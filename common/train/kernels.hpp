// The arithmetic of the hot loops, one table of functions per instruction set. Every table gives
// the same bits: KERNELS.md states the order of operations of each kernel.  The kernels take plain
// pointers and call no library function. An inline function that is compiled with AVX flags in a
// kernel's file could become the linker's copy for the whole program, and would crash on a
// processor without AVX.  Widths n are multiples of 16 (kLanes); no alignment is required.
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"

namespace gleaner {

// The instruction sets that the kernels are written for. The level decides only how fast they are.
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

// `requested` is the value of GLEANER_SIMD; an empty value selects the best available level. The
// error for an unknown or unavailable level names the available levels.
Result<SimdLevel> choose_simd_level(std::string_view requested);

// choose_simd_level() of the environment's GLEANER_SIMD. Programs call it once at start-up and
// report its error before anything else happens.
Result<SimdLevel> simd_level_from_environment();

// Weight of a row's first gradient in its state. With 1 - decay = 0.001 instead, the first step
// would be thirty times the rate, which unsettles labels with few examples; with 1 (full correction
// of the bias) rare labels learn too slowly. Figures are in tests/bench/RESULTS.md.
inline constexpr float kFirstFraction = 0.1F;

// The row-wise second-moment rule: state = decay * state + (1 - decay) * mean(g^2), then
// w -= rate * g / (sqrt(state) + epsilon).
struct RmsRule {
  float rate = 0;
  float decay = 0;
  float decay_complement = 0;  // 1 - decay, rounded once by the caller
  float first_fraction = 0;    // replaces decay_complement while the state is zero: kFirstFraction
  float epsilon = 0;
};

// Rows whose steps are computed together.
inline constexpr std::size_t kRowsPerStep = 16;

// A (neuron, example) pair of a neuron's list: the example's position in the batch, and a bit that
// says whether the neuron is a true label of the example.
using ActivePair = std::uint16_t;
inline constexpr ActivePair kTruePair = 0x8000;
inline constexpr ActivePair kPairExampleMask = 0x7fff;

// The work of several neurons on one batch: forward, loss, backward, update. Several neurons at a
// time, so that the logistic functions of their pairs fill whole vectors.
struct RowsTraining {
  std::size_t width = 0;                // n
  float* weights = nullptr;             // of row 0; rows are n apart; updated
  float* biases = nullptr;              // by row, updated
  float* states = nullptr;              // by row, updated
  const std::uint32_t* rows = nullptr;  // rows to train, ascending
  std::size_t row_count = 0;
  std::size_t rows_after = 0;  // entries of rows after row_count: fetched for the next call
  const std::size_t* pair_ends = nullptr;  // parallel to rows: end of the row's list in `pairs`
  const ActivePair* pairs = nullptr;       // lists ascend by example; 16 more are readable
  // h = scale * code, with quantized activations from -127 to 127 in two's complement. They are
  // passed instead of h, since a batch of them fits the first cache level.
  const std::uint8_t* codes = nullptr;  // examples x n
  const float* scales = nullptr;        // examples
  // examples x n: each pair adds its part, in the unit of kGradientGuardBits.
  std::uint32_t* gradient_sums = nullptr;
  float gradient_magic = 0;    // gradient_magic() of the step
  float* logits = nullptr;     // scratch: 16 more than there are pairs
  float* deltas = nullptr;     // scratch: the same
  float* gradients = nullptr;  // scratch: kRowsPerStep x n
};

// The activations' gradients are summed in integers modulo 2^32, so that the order and grouping of
// neurons do not matter. A pair's part delta * w is rounded to a multiple of a unit, which is the
// gradient step / 2^kGradientGuardBits. Adding 1.5 * 2^23 units rounds the part and leaves the
// multiple in the lowest bits of the float. The sums add these floats' bits; the bits of the addend
// are subtracted at the end. A part of 2^22 units or more (a weight beyond 64 with a step of 2^-10)
// makes the sum useless, but equally on every machine.
inline constexpr int kGradientGuardBits = 6;
float gradient_magic(int gradient_step_log2);

// Ends a shard's part of an example's gradient: see Kernels::round_gradient.
struct GradientRounding {
  std::size_t width = 0;                 // n
  std::uint32_t* const* sums = nullptr;  // some arrays of n
  std::size_t sum_count = 0;             // at least one
  std::uint32_t addend = 0;              // the bits that the pairs' magic numbers added
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

// Byte multiplications want one unsigned factor: a code plus this offset is 1 to 255.
inline constexpr std::int32_t kCodeOffset = 128;
inline constexpr int kCodeOffsets = 0x8080;  // flipping these bits adds the offset to two codes

// Random +-1 projections; SimHash takes their signs. Projection p = q * block + k flips the
// columns' signs by the q-th choice, then takes entry k of the Walsh-Hadamard transform: the sum
// over columns i of (-1)^popcount(k & i) * flips[q * block + i] * x[i]. The projections of one q
// are orthogonal to each other. For a row they take block * log2(block) additions instead of
// block^2.
struct SignProjections {
  std::size_t width = 0;               // n
  std::size_t block = 0;               // the smallest power of two that is at least n and 32
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
  // sigmoid(x) and softplus(x) = log(1 + e^x). e^-|x| keeps its value at |x| = 64 for larger |x|.
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
  // The rule of RmsRule for kRowsPerStep rows at once. `squares` are the sums of squares of the
  // rows' gradients over n values. Updates `states` and writes the factors by which the gradients
  // are added to the rows.
  void (*rms_steps)(const RmsRule& rule, const float* squares, std::size_t n, float* states,
                    float* factors);

  // values[i] = scale * codes[i].
  void (*dequantise)(float scale, const std::uint8_t* codes, float* values, std::size_t n);
  // Adds the arrays into the first one, subtracts the addend, rounds to whole gradient steps
  // (halves up) and zeroes the other arrays. The first array held whole steps before, so the
  // addition is rounded by itself. check[l] becomes the sum of the entries i with i % 16 = l, each
  // times an odd number that depends on i; the checksum is therefore linear in the entries.
  void (*round_gradient)(const GradientRounding& work);

  LossKernels losses[static_cast<std::size_t>(Loss::kCount)];  // by Loss

  void (*score_rows)(const ScoreBlock& block);

  // Bit p (of 16-bit words, lowest first) = whether the p-th projection of `codes` is positive.
  void (*project_codes)(const SignProjections& projections, const std::uint8_t* codes,
                        std::uint16_t* bits);
  // Does the same for `count` rows of floats. Row r's words begin at bits + r * (projections.count
  // / 16).
  void (*project_rows)(const SignProjections& projections, const float* const* rows,
                       std::size_t count, std::uint16_t* bits);

  // levels[i] = (values[i] - committed[i]) / scale, rounded; then values[i] = committed[i] + scale
  // * levels[i]. Returns the scale, at which the largest difference becomes kDeltaLevelMax. When no
  // difference reaches kDeltaMin (common/model/shard_rows.hpp), the scale is 0 and the values
  // become the committed ones. Values are finite.
  float (*round_delta)(const float* committed, float* values, std::int8_t* levels, std::size_t n);

  // For i = 0 .. count - 1 in this order, for every column j < width: sum[j] = fma(factors[i],
  // rows[picks[i] * stride + j], sum[j]). All pointers are 64-byte-aligned; stride is a multiple of
  // 16. The input layer spends most of its time here.
  void (*add_rows)(const float* rows, std::size_t stride, const std::uint32_t* picks,
                   const float* factors, std::size_t count, float* sum, std::size_t width);
};

// The table of an available level (see available_simd_levels).
const Kernels& kernels_for(SimdLevel level);

// The table of the level that set_default_level() chose, else of simd_level_from_environment().
// Programs must have reported that function's error before.
const Kernels& default_kernels();

// The arithmetic of the model's loss.
const LossKernels& loss_kernels(const Kernels& kernels, const ModelConfig& model);

// Called by self_test.hpp at start-up, before anything computes.
void set_default_level(SimdLevel level);

// The tables of kernels, one per file. Private to this folder.
const Kernels& scalar_kernels();
#if defined(GLEANER_X86_KERNELS)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

}  // namespace gleaner
