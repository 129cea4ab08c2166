// Kernels for AVX-512 F, BW, DQ and VL. Sixteen lanes are one register.
#include <immintrin.h>

#include "common/train/kernels.hpp"
#include "common/train/vec256.hpp"

namespace gleaner {
namespace {

struct Vec {
  static constexpr std::size_t kBackwardBlocks = 8;

  __m512 all;

  static Vec zero() { return {_mm512_setzero_ps()}; }

  static Vec broadcast(float x) { return {_mm512_set1_ps(x)}; }

  static Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }

  static Vec load_codes(const std::uint8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
  }

  void store(float* p) const { _mm512_storeu_ps(p, all); }

  void store_rounded(std::int32_t* p) const { _mm512_storeu_si512(p, _mm512_cvtps_epi32(all)); }

  void add_bits(std::uint32_t* sums) const {
    _mm512_storeu_si512(sums, _mm512_add_epi32(_mm512_loadu_si512(sums), _mm512_castps_si512(all)));
  }

  std::int64_t sum_rounded(std::size_t lanes) const {
    const auto counted = static_cast<__mmask16>((1u << lanes) - 1);
    const __m512i whole = _mm512_maskz_cvtps_epi32(counted, all);
    return _mm512_reduce_add_epi64(
        _mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(whole)),
                         _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(whole, 1))));
  }

  static float fma_one(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

  static Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.all)}; }

  static Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.all, b.all, c.all)}; }

  static Vec add(Vec a, Vec b) { return {_mm512_add_ps(a.all, b.all)}; }

  static Vec sub(Vec a, Vec b) { return {_mm512_sub_ps(a.all, b.all)}; }

  static Vec mul(Vec a, Vec b) { return {_mm512_mul_ps(a.all, b.all)}; }

  static Vec div(Vec a, Vec b) { return {_mm512_div_ps(a.all, b.all)}; }

  static Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.all, b.all)}; }

  static Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.all, b.all)}; }

  static Vec negate(Vec x) { return {_mm512_xor_ps(x.all, _mm512_set1_ps(-0.0F))}; }

  static Vec select_negative(Vec x, Vec then, Vec otherwise) {
    const __mmask16 is_negative = _mm512_cmp_ps_mask(x.all, _mm512_setzero_ps(), _CMP_LT_OQ);
    return {_mm512_mask_blend_ps(is_negative, otherwise.all, then.all)};
  }

  static Vec select_nonzero(Vec x, Vec then, Vec otherwise) {
    const __mmask16 is_nonzero = _mm512_cmp_ps_mask(x.all, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    return {_mm512_mask_blend_ps(is_nonzero, otherwise.all, then.all)};
  }

  static Vec negate_true(Vec x, const ActivePair* pairs) {
    const __m512 signs =
        _mm512_insertf32x8(_mm512_castps256_ps512(true_signs(pairs)), true_signs(pairs + 8), 1);
    return {_mm512_xor_ps(x.all, signs)};
  }

  static Vec power_of_two(Vec k) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(k.all), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
  }

  static __m256 sum_of_halves(Vec x) {
    return _mm256_add_ps(_mm512_castps512_ps256(x.all), _mm512_extractf32x8_ps(x.all, 1));
  }

  static float reduce(Vec x) { return reduce_eight(sum_of_halves(x)); }

  static void reduce4(Vec a, Vec b, Vec c, Vec d, const float* scales, const float* biases,
                      float* sums) {
    reduce_eight4(sum_of_halves(a), sum_of_halves(b), sum_of_halves(c), sum_of_halves(d), scales,
                  biases, sums);
  }

  // One level. `swapped` has each lane's partner: lanes in `minus` are subtracted from their
  // partners, other lanes are added. Multiplying by one or minus one is exact.
  static __m512 butterfly(__m512 x, __m512 swapped, __mmask16 minus) {
    const __m512 signs = _mm512_mask_blend_ps(minus, _mm512_set1_ps(1.0F), _mm512_set1_ps(-1.0F));
    return _mm512_fmadd_ps(signs, x, swapped);
  }

  static Vec hadamard(Vec x) {
    __m512 y = butterfly(x.all, _mm512_permute_ps(x.all, 0xb1), 0xaaaa);
    y = butterfly(y, _mm512_permute_ps(y, 0x4e), 0xcccc);
    y = butterfly(y, _mm512_shuffle_f32x4(y, y, 0xb1), 0xf0f0);
    return {butterfly(y, _mm512_shuffle_f32x4(y, y, 0x4e), 0xff00)};
  }

  static std::uint16_t positive_bits(Vec x) {
    return _mm512_cmp_ps_mask(x.all, _mm512_setzero_ps(), _CMP_GT_OQ);
  }
};

// The instruction takes unsigned codes. Adding 128 (kCodeOffset) to each code adds the projection's
// threshold to its sum. 128 columns of at most 255 add up to 32,640, which fits 16 bits.
constexpr std::size_t kColumnsPerSpill = 128;

void project_codes_kernel(const SignProjections& projections, const std::uint8_t* codes,
                          std::uint16_t* bits) {
  for (std::size_t first = 0; first < projections.count; first += 32) {
    __m512i low_sums = _mm512_setzero_si512();
    __m512i high_sums = _mm512_setzero_si512();
    for (std::size_t begin = 0; begin < projections.width; begin += kColumnsPerSpill) {
      const std::size_t end = begin + kColumnsPerSpill < projections.width
                                  ? begin + kColumnsPerSpill
                                  : projections.width;
      __m512i sums = _mm512_setzero_si512();
      for (std::size_t i = begin; i < end; i += 2) {
        const int pair = (codes[i] | (codes[i + 1] << 8)) ^ kCodeOffsets;
        const __m512i signs =
            _mm512_loadu_si512(projections.pairs + i * projections.count + 2 * first);
        sums = _mm512_add_epi16(
            sums, _mm512_maddubs_epi16(_mm512_set1_epi16(static_cast<short>(pair)), signs));
      }
      low_sums = _mm512_add_epi32(low_sums, _mm512_cvtepi16_epi32(_mm512_castsi512_si256(sums)));
      high_sums =
          _mm512_add_epi32(high_sums, _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(sums, 1)));
    }
    const std::int32_t* thresholds = projections.thresholds + first;
    bits[first / 16] = _mm512_cmpgt_epi32_mask(low_sums, _mm512_loadu_si512(thresholds));
    bits[first / 16 + 1] = _mm512_cmpgt_epi32_mask(high_sums, _mm512_loadu_si512(thresholds + 16));
  }
}

}  // namespace
}  // namespace gleaner

#include "common/train/kernel_bodies.hpp"

namespace gleaner {

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable = make_kernels(SimdLevel::kAvx512);
  return kTable;
}

}  // namespace gleaner
