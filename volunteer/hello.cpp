#include "volunteer/hello.hpp"

#include <filesystem>
#include <system_error>
#include <vector>

#include "common/os/process.hpp"
#include "common/time.hpp"
#include "common/train/kernels.hpp"
#include "common/train/self_test/self_test.hpp"
#include "schema/versions.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kWidth = 128;
constexpr std::size_t kRows = 512;
constexpr std::size_t kTasks = 64;
constexpr double kSeconds = 0.03;  // of a processor, a thread

}  // namespace

Result<KeyPair> load_identity(const std::string& cache_dir) {
  if (cache_dir.empty()) return KeyPair::make();
  std::error_code error;
  std::filesystem::create_directories(cache_dir, error);
  auto key = KeyPair::load_or_make((std::filesystem::path(cache_dir) / "key").string());
  if (!key && key.error().code == ErrorCode::kIo) {
    return Error{ErrorCode::kIo,
                 key.error().message + " (choose a --cache folder that can be written)"};
  }
  return key;
}

float measure_speed(ThreadPool& pool) {
  const Kernels& kernels = default_kernels();
  const std::vector<float> rows(kRows * kWidth, 0.5F);
  std::vector<float> sums(kTasks);
  const double threads = pool.threads();
  const double start = os::processor_seconds();
  double seconds = 0;
  double work = 0;
  while (seconds < kSeconds * threads) {
    pool.parallel_for(kTasks, [&](std::size_t task, unsigned) {
      for (std::size_t row = 0; row < kRows; ++row) {
        sums[task] += kernels.dot(&rows[row * kWidth], &rows[0], kWidth);
      }
    });
    work += static_cast<double>(kTasks * kRows * kWidth);
    seconds = os::processor_seconds() - start;
  }
  return static_cast<float>(work * threads / seconds / 1e9);
}

Hello make_hello(const std::string& name, const std::string& invite, std::uint32_t threads,
                 std::uint64_t memory_bytes) {
  ThreadPool pool(threads);
  Hello hello;
  hello.protocol_min = kProtocolMin;
  hello.protocol_max = kProtocolMax;
  hello.build = kBuildVersion;
  hello.name = name;
  hello.cores = threads;
  hello.memory_bytes = memory_bytes;
  hello.simd = simd_level_name(default_kernels().level);
  hello.speed = measure_speed(pool);
  hello.invite = invite;
  hello.kernels = own_digests();
  hello.process =
      static_cast<std::uint64_t>(wall_milliseconds()) << 20 | (random_bits() & 0xF'FFFF);
  return hello;
}

}  // namespace gleaner::volunteer
