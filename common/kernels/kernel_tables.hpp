// The tables of kernels, one a file; kernels_for chooses. Private to this folder.
#pragma once

#include "common/kernels/kernels.hpp"

namespace gleaner {

extern const Kernels kScalarKernels;
#if defined(GLEANER_X86_KERNELS)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

}  // namespace gleaner
