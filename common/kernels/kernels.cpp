#include "common/kernels/kernels.hpp"

#include <cmath>

#include "common/check.hpp"
#include "common/kernels/kernel_tables.hpp"

namespace gleaner {

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
  static const Kernels& table = kernels_for(simd_level_from_environment().value());
  return table;
}

}  // namespace gleaner
