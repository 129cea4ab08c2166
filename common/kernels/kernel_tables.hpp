// The tables of kernels, one a file; kernels_for chooses. Private to this folder.
#pragma once

#include "common/kernels/kernels.hpp"

namespace gleaner {

const Kernels& scalar_kernels();
#if defined(GLEANER_X86_KERNELS)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

}  // namespace gleaner
