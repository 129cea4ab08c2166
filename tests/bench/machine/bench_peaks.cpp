#include "tests/bench/machine/bench_peaks.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <cmath>

#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/kernels.hpp"
#include "tests/bench/machine/bench_timing.hpp"

namespace gleaner {
namespace {

// Sums that do not wait for each other, more than any core needs to keep its units busy.
constexpr std::size_t kSums = 10;
constexpr std::size_t kMultiplyAdds = 100'000;  // of each sum

struct PeakLoops {
  std::size_t lanes;
  float (*multiply_add)(float factor);
  float (*read)(const float* values, std::size_t count);  // a multiple of 128
};

float multiply_add_scalar(float factor) {
  std::array<float, kSums> sums{};
  for (std::size_t i = 0; i < kMultiplyAdds; ++i) {
    for (float& sum : sums) sum = std::fma(sum, factor, factor);
  }
  return sums[0] + sums[kSums - 1];
}

float read_scalar(const float* values, std::size_t count) {
  std::array<float, 16> sums{};
  for (std::size_t i = 0; i < count; i += 16) {
    for (std::size_t l = 0; l < 16; ++l) sums[l] += values[i + l];
  }
  return sums[0] + sums[15];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float multiply_add_avx2(float factor) {
  __m256 sums[kSums];
  const __m256 f = _mm256_set1_ps(factor);
  for (__m256& sum : sums) sum = f;
  for (std::size_t i = 0; i < kMultiplyAdds; ++i) {
#pragma GCC unroll 10
    for (std::size_t s = 0; s < kSums; ++s) sums[s] = _mm256_fmadd_ps(sums[s], f, f);
  }
  __m256 all = sums[0];
  for (std::size_t s = 1; s < kSums; ++s) all = _mm256_add_ps(all, sums[s]);
  return _mm256_cvtss_f32(all);
}

__attribute__((target("avx2"))) float read_avx2(const float* values, std::size_t count) {
  __m256 sums[8] = {};
  for (std::size_t i = 0; i < count; i += 64) {
#pragma GCC unroll 8
    for (std::size_t s = 0; s < 8; ++s) {
      sums[s] = _mm256_add_ps(sums[s], _mm256_loadu_ps(values + i + 8 * s));
    }
  }
  __m256 all = sums[0];
  for (std::size_t s = 1; s < 8; ++s) all = _mm256_add_ps(all, sums[s]);
  return _mm256_cvtss_f32(all);
}

__attribute__((target("avx512f"))) float multiply_add_avx512(float factor) {
  __m512 sums[kSums];
  const __m512 f = _mm512_set1_ps(factor);
  for (__m512& sum : sums) sum = f;
  for (std::size_t i = 0; i < kMultiplyAdds; ++i) {
#pragma GCC unroll 10
    for (std::size_t s = 0; s < kSums; ++s) sums[s] = _mm512_fmadd_ps(sums[s], f, f);
  }
  __m512 all = sums[0];
  for (std::size_t s = 1; s < kSums; ++s) all = _mm512_add_ps(all, sums[s]);
  return _mm512_cvtss_f32(all);
}

__attribute__((target("avx512f"))) float read_avx512(const float* values, std::size_t count) {
  __m512 sums[8] = {};
  for (std::size_t i = 0; i < count; i += 128) {
#pragma GCC unroll 8
    for (std::size_t s = 0; s < 8; ++s) {
      sums[s] = _mm512_add_ps(sums[s], _mm512_loadu_ps(values + i + 16 * s));
    }
  }
  __m512 all = sums[0];
  for (std::size_t s = 1; s < 8; ++s) all = _mm512_add_ps(all, sums[s]);
  return _mm512_cvtss_f32(all);
}
#endif

PeakLoops loops_for(SimdLevel level) {
#if defined(__x86_64__)
  if (level == SimdLevel::kAvx512) return {16, multiply_add_avx512, read_avx512};
  if (level == SimdLevel::kAvx2) return {8, multiply_add_avx2, read_avx2};
#endif
  (void)level;
  return {1, multiply_add_scalar, read_scalar};
}

MemoryPeak measure_memory(const char* name, std::size_t bytes, const PeakLoops& loops,
                          const Kernels& kernels, double budget) {
  constexpr std::size_t kAtOnce = 2048;  // floats
  constexpr std::size_t kCallBytes = std::size_t{4} << 20;
  const std::size_t count = bytes / sizeof(float);
  AlignedVector<float> values(count, 1.0F);
  const AlignedVector<float> steps(kAtOnce, 1e-9F);
  const std::size_t repeats = bytes < kCallBytes ? kCallBytes / bytes : 1;
  const double walked = static_cast<double>(repeats * bytes);
  volatile float sink = 0;
  const double read = best_seconds(budget, [&] {
    for (std::size_t r = 0; r < repeats; ++r) sink = loops.read(values.data(), count);
  });
  const double update = best_seconds(budget, [&] {
    for (std::size_t r = 0; r < repeats; ++r) {
      for (std::size_t i = 0; i < count; i += kAtOnce) {
        kernels.axpy(1.0F, steps.data(), values.data() + i, kAtOnce);
      }
    }
  });
  return {name, bytes, walked / read, walked / update};
}

// Rows fetched before their turn: beyond, more gives no more.
constexpr std::size_t kRowsAhead = 16;

// Passes over the rows wanted, each of which `visit` is given when it is on its way.
template <typename Visit>
double pick_seconds(double budget, const float* values, std::size_t hidden,
                    const std::vector<std::uint32_t>& rows, const Visit& visit) {
  return best_seconds(budget, [&] {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (r + kRowsAhead < rows.size()) {
        const float* ahead = values + rows[r + kRowsAhead] * hidden;
        for (std::size_t i = 0; i < hidden; i += kLanes) __builtin_prefetch(ahead + i, 0, 2);
      }
      visit(rows[r] * hidden);
    }
  });
}

MemoryPeak measure_picked_rows(std::size_t bytes, std::size_t hidden, const Kernels& kernels,
                               double budget) {
  AlignedVector<float> values(bytes / sizeof(float), 1.0F);
  const std::vector<std::uint32_t> rows = picked_rows(values.size() / hidden);
  const AlignedVector<float> steps(hidden, 1e-9F);
  const auto wanted = static_cast<double>(rows.size() * hidden * sizeof(float));
  volatile float sink = 0;
  const double read = pick_seconds(budget, values.data(), hidden, rows, [&](std::size_t begin) {
    sink = kernels.sum_of_squares(values.data() + begin, hidden);
  });
  const double update = pick_seconds(budget, values.data(), hidden, rows, [&](std::size_t begin) {
    kernels.axpy(1.0F, steps.data(), values.data() + begin, hidden);
  });
  return {"main memory, picked", bytes, wanted / read, wanted / update};
}

}  // namespace

std::vector<std::uint32_t> picked_rows(std::size_t rows) {
  std::vector<std::uint32_t> picked;
  for (std::size_t row = 0; row < rows; ++row) {
    if (counter_random(1, Purpose::kTest, row) % 2 == 0) {
      picked.push_back(static_cast<std::uint32_t>(row));
    }
  }
  return picked;
}

MachinePeaks measure_peaks(SimdLevel level, std::uint32_t hidden, double budget) {
  const PeakLoops loops = loops_for(level);
  MachinePeaks peaks;
  peaks.level = level;
  volatile float sink = 0;
  const double seconds = best_seconds(budget, [&] { sink = loops.multiply_add(0.5F); });
  peaks.flops_per_second = 2.0 * static_cast<double>(kSums * kMultiplyAdds * loops.lanes) / seconds;
  const Kernels& kernels = kernels_for(level);
  constexpr std::size_t kKib = 1024;
  peaks.memory = {
      measure_memory("first cache level", 16 * kKib, loops, kernels, budget),
      measure_memory("second cache level", 512 * kKib, loops, kernels, budget),
      measure_memory("third cache level", 8 * kKib * kKib, loops, kernels, budget),
      measure_memory("main memory", 256 * kKib * kKib, loops, kernels, budget),
      measure_picked_rows(256 * kKib * kKib, hidden, kernels, budget),
  };
  return peaks;
}

}  // namespace gleaner
