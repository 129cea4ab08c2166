#include "volunteer/speed.hpp"

#include <algorithm>
#include <vector>

#include "common/kernels/kernels.hpp"
#include "common/time.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kWidth = 128;
constexpr std::size_t kRows = 512;
constexpr std::size_t kTasks = 64;
constexpr Micros kDuration{30'000};

}  // namespace

float measure_speed(ThreadPool& pool) {
  const Kernels& kernels = default_kernels();
  const std::vector<float> rows(kRows * kWidth, 0.5F);
  std::vector<float> sums(kTasks);
  const Instant start = monotonic_now();
  Micros elapsed{0};
  double work = 0;
  while (elapsed < kDuration) {
    pool.parallel_for(kTasks, [&](std::size_t task, unsigned) {
      for (std::size_t row = 0; row < kRows; ++row) {
        sums[task] += kernels.dot(&rows[row * kWidth], &rows[0], kWidth);
      }
    });
    work += static_cast<double>(kTasks * kRows * kWidth);
    elapsed = monotonic_now() - start;
  }
  return static_cast<float>(work / static_cast<double>(elapsed.count()) / 1e3);
}

}  // namespace gleaner::volunteer
