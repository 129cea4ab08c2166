#include "volunteer/speed.hpp"

#include <ctime>
#include <vector>

#include "common/kernels/kernels.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kWidth = 128;
constexpr std::size_t kRows = 512;
constexpr std::size_t kTasks = 64;
constexpr double kSeconds = 0.03;  // of a processor, a thread

// Seconds of the process so far, all threads together.
double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

}  // namespace

float measure_speed(ThreadPool& pool) {
  const Kernels& kernels = default_kernels();
  const std::vector<float> rows(kRows * kWidth, 0.5F);
  std::vector<float> sums(kTasks);
  const double threads = pool.threads();
  const double start = processor_seconds();
  double seconds = 0;
  double work = 0;
  while (seconds < kSeconds * threads) {
    pool.parallel_for(kTasks, [&](std::size_t task, unsigned) {
      for (std::size_t row = 0; row < kRows; ++row) {
        sums[task] += kernels.dot(&rows[row * kWidth], &rows[0], kWidth);
      }
    });
    work += static_cast<double>(kTasks * kRows * kWidth);
    seconds = processor_seconds() - start;
  }
  return static_cast<float>(work * threads / seconds / 1e9);
}

}  // namespace gleaner::volunteer
