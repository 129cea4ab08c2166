#include "common/train/kernels.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>

#if defined(GLEANER_X86_KERNELS)
#include <cpuid.h>
#endif

namespace gleaner {
namespace {

#if defined(GLEANER_X86_KERNELS)
// Not every compiler's __builtin_cpu_supports knows this name.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 29)) != 0;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
bool has_avx2() {
  return false;
}

bool has_avx512() {
  return false;
}
#endif

std::string available_names() {
  std::string names;
  for (const SimdLevel level : available_simd_levels()) {
    if (!names.empty()) names += ", ";
    names += simd_level_name(level);
  }
  return names;
}

// Null until the table is asked for or chosen.
std::atomic<const Kernels*> default_table{nullptr};

}  // namespace

const char* simd_level_name(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return "scalar";
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
  }
  return "unknown";
}

Result<SimdLevel> parse_simd_level(std::string_view name) {
  for (const SimdLevel level : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    if (name == simd_level_name(level)) return level;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("GLEANER_SIMD is \"{}\": it must be scalar, avx2 or avx512", name)};
}

std::vector<SimdLevel> available_simd_levels() {
  std::vector<SimdLevel> levels{SimdLevel::kScalar};
  if (has_avx2()) levels.push_back(SimdLevel::kAvx2);
  if (has_avx512()) levels.push_back(SimdLevel::kAvx512);
  return levels;
}

Result<SimdLevel> choose_simd_level(std::string_view requested) {
  const std::vector<SimdLevel> levels = available_simd_levels();
  if (requested.empty()) return levels.back();
  Result<SimdLevel> level = parse_simd_level(requested);
  if (!level) return level;
  for (const SimdLevel available : levels) {
    if (available == *level) return *level;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("GLEANER_SIMD is \"{}\": this program on this processor can run {}",
                           requested, available_names())};
}

Result<SimdLevel> simd_level_from_environment() {
  // Read at start-up, before any thread could change the environment.
  const char* requested = std::getenv("GLEANER_SIMD");  // NOLINT(concurrency-mt-unsafe)
  return choose_simd_level(requested == nullptr ? std::string_view() : requested);
}

float gradient_magic(int gradient_step_log2) {
  return std::ldexp(1.5F * 0x1p23F, gradient_step_log2 - kGradientGuardBits);
}

const Kernels& kernels_for(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return scalar_kernels();
#if defined(GLEANER_X86_KERNELS)
    case SimdLevel::kAvx2:
      return avx2_kernels();
    case SimdLevel::kAvx512:
      return avx512_kernels();
#endif
    default:
      break;
  }
  GLEANER_CHECK(false && "the level is not available in this build");
  return scalar_kernels();
}

const Kernels& default_kernels() {
  const Kernels* table = default_table.load();
  if (table == nullptr) {
    table = &kernels_for(simd_level_from_environment().value());
    default_table.store(table);
  }
  return *table;
}

const LossKernels& loss_kernels(const Kernels& kernels, const ModelConfig& model) {
  return kernels.losses[static_cast<std::size_t>(loss_of(model))];
}

void set_default_level(SimdLevel level) {
  default_table.store(&kernels_for(level));
}

}  // namespace gleaner
