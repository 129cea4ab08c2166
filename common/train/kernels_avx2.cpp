// Kernels for AVX2, FMA and F16C. Sixteen lanes are two registers.
#include <immintrin.h>

#include "common/train/kernels.hpp"
#include "common/train/vec256.hpp"

namespace gleaner {
namespace {

struct Vec {
  static constexpr std::size_t kBackwardBlocks = 4;

  __m256 low;
  __m256 high;

  static Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }

  static Vec broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }

  static Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }

  // Loads eight bytes and widens them.
  static __m256 eight_bytes(const std::uint8_t* p) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }

  static Vec load_codes(const std::uint8_t* p) { return {eight_bytes(p), eight_bytes(p + 8)}; }

  void store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }

  void store_rounded(std::int32_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_cvtps_epi32(low));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), _mm256_cvtps_epi32(high));
  }

  static void add_eight(std::uint32_t* sums, __m256 x) {
    auto* const p = reinterpret_cast<__m256i*>(sums);
    _mm256_storeu_si256(p, _mm256_add_epi32(_mm256_loadu_si256(p), _mm256_castps_si256(x)));
  }

  void add_bits(std::uint32_t* sums) const {
    add_eight(sums, low);
    add_eight(sums + 8, high);
  }

  std::int64_t sum_rounded(std::size_t lanes) const {
    std::int32_t whole[16];
    store_rounded(whole);
    std::int64_t sum = 0;
    for (std::size_t l = 0; l < lanes; ++l) sum += whole[l];
    return sum;
  }

  static float fma_one(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

  static Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }

  static Vec fma(Vec a, Vec b, Vec c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }

  static Vec add(Vec a, Vec b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }

  static Vec sub(Vec a, Vec b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }

  static Vec mul(Vec a, Vec b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }

  static Vec div(Vec a, Vec b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }

  static Vec min(Vec a, Vec b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }

  static Vec max(Vec a, Vec b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }

  static Vec flip(Vec x, __m256 low_signs, __m256 high_signs) {
    return {_mm256_xor_ps(x.low, low_signs), _mm256_xor_ps(x.high, high_signs)};
  }

  static Vec negate(Vec x) { return flip(x, _mm256_set1_ps(-0.0F), _mm256_set1_ps(-0.0F)); }

  static Vec select_negative(Vec x, Vec then, Vec otherwise) {
    const __m256 zeros = _mm256_setzero_ps();
    return {_mm256_blendv_ps(otherwise.low, then.low, _mm256_cmp_ps(x.low, zeros, _CMP_LT_OQ)),
            _mm256_blendv_ps(otherwise.high, then.high, _mm256_cmp_ps(x.high, zeros, _CMP_LT_OQ))};
  }

  static Vec select_nonzero(Vec x, Vec then, Vec otherwise) {
    const __m256 zeros = _mm256_setzero_ps();
    return {_mm256_blendv_ps(otherwise.low, then.low, _mm256_cmp_ps(x.low, zeros, _CMP_NEQ_UQ)),
            _mm256_blendv_ps(otherwise.high, then.high, _mm256_cmp_ps(x.high, zeros, _CMP_NEQ_UQ))};
  }

  static Vec negate_true(Vec x, const ActivePair* pairs) {
    return flip(x, true_signs(pairs), true_signs(pairs + 8));
  }

  static __m256 power_of_two_half(__m256 k) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }

  static Vec power_of_two(Vec k) { return {power_of_two_half(k.low), power_of_two_half(k.high)}; }

  static __m256 sum_of_halves(Vec x) { return _mm256_add_ps(x.low, x.high); }

  static float reduce(Vec x) { return reduce_eight(sum_of_halves(x)); }

  static void reduce4(Vec a, Vec b, Vec c, Vec d, const float* scales, const float* biases,
                      float* sums) {
    reduce_eight4(sum_of_halves(a), sum_of_halves(b), sum_of_halves(c), sum_of_halves(d), scales,
                  biases, sums);
  }

  // The three levels within eight lanes.
  static __m256 hadamard_eight(__m256 x) {
    const __m256 ones = _mm256_set1_ps(1.0F);
    const __m256 minus = _mm256_set1_ps(-1.0F);
    x = _mm256_fmadd_ps(_mm256_blend_ps(ones, minus, 0xaa), x, _mm256_permute_ps(x, 0xb1));
    x = _mm256_fmadd_ps(_mm256_blend_ps(ones, minus, 0xcc), x, _mm256_permute_ps(x, 0x4e));
    return _mm256_fmadd_ps(_mm256_blend_ps(ones, minus, 0xf0), x,
                           _mm256_permute2f128_ps(x, x, 0x01));
  }

  static Vec hadamard(Vec x) {
    const __m256 a = hadamard_eight(x.low);
    const __m256 b = hadamard_eight(x.high);
    return {_mm256_add_ps(a, b), _mm256_sub_ps(a, b)};
  }

  static std::uint16_t positive_bits(Vec x) {
    const __m256 zeros = _mm256_setzero_ps();
    const int low_bits = _mm256_movemask_ps(_mm256_cmp_ps(x.low, zeros, _CMP_GT_OQ));
    const int high_bits = _mm256_movemask_ps(_mm256_cmp_ps(x.high, zeros, _CMP_GT_OQ));
    return static_cast<std::uint16_t>(low_bits | (high_bits << 8));
  }
};

// The instruction takes unsigned codes. Adding 128 (kCodeOffset) to each code adds the projection's
// threshold to its sum. 128 columns of at most 255 add up to 32,640, which fits 16 bits.
constexpr std::size_t kColumnsPerSpill = 128;

void project_codes_kernel(const SignProjections& projections, const std::uint8_t* codes,
                          std::uint16_t* bits) {
  for (std::size_t first = 0; first < projections.count; first += 16) {
    __m256i low_sums = _mm256_setzero_si256();
    __m256i high_sums = _mm256_setzero_si256();
    for (std::size_t begin = 0; begin < projections.width; begin += kColumnsPerSpill) {
      const std::size_t end = begin + kColumnsPerSpill < projections.width
                                  ? begin + kColumnsPerSpill
                                  : projections.width;
      __m256i sums = _mm256_setzero_si256();
      for (std::size_t i = begin; i < end; i += 2) {
        const int pair = (codes[i] | (codes[i + 1] << 8)) ^ kCodeOffsets;
        const __m256i signs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(
            projections.pairs + i * projections.count + 2 * first));
        sums = _mm256_add_epi16(
            sums, _mm256_maddubs_epi16(_mm256_set1_epi16(static_cast<short>(pair)), signs));
      }
      low_sums = _mm256_add_epi32(low_sums, _mm256_cvtepi16_epi32(_mm256_castsi256_si128(sums)));
      high_sums =
          _mm256_add_epi32(high_sums, _mm256_cvtepi16_epi32(_mm256_extracti128_si256(sums, 1)));
    }
    const auto* thresholds = reinterpret_cast<const __m256i*>(projections.thresholds + first);
    const __m256 low_positive =
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(low_sums, _mm256_loadu_si256(thresholds)));
    const __m256 high_positive =
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(high_sums, _mm256_loadu_si256(thresholds + 1)));
    bits[first / 16] = static_cast<std::uint16_t>(_mm256_movemask_ps(low_positive) |
                                                  (_mm256_movemask_ps(high_positive) << 8));
  }
}

}  // namespace
}  // namespace gleaner

#include "common/train/kernel_bodies.hpp"

namespace gleaner {

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable = make_kernels(SimdLevel::kAvx2);
  return kTable;
}

}  // namespace gleaner
