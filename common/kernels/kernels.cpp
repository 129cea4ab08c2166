#include "common/kernels/kernels.hpp"

#include "common/check.hpp"
#include "common/kernels/kernel_tables.hpp"

namespace gleaner {

const Kernels& kernels_for(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return kScalarKernels;
#if defined(GLEANER_X86_KERNELS)
    case SimdLevel::kAvx2:
      return kAvx2Kernels;
    case SimdLevel::kAvx512:
      return kAvx512Kernels;
#endif
    default:
      break;
  }
  GLEANER_CHECK(false && "the level is not available in this build");
  return kScalarKernels;
}

const Kernels& default_kernels() {
  static const Kernels& table = kernels_for(simd_level_from_environment().value());
  return table;
}

}  // namespace gleaner
