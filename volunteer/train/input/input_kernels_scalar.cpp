#include <cmath>

#include "volunteer/train/input/input_kernels.hpp"

namespace gleaner {

void add_rows_scalar(const float* rows, std::size_t stride, const std::uint32_t* picks,
                     const float* factors, std::size_t count, float* sum, std::size_t width) {
  for (std::size_t i = 0; i < count; ++i) {
    const float* row = rows + picks[i] * stride;
    for (std::size_t j = 0; j < width; ++j) sum[j] = std::fma(factors[i], row[j], sum[j]);
  }
}

}  // namespace gleaner
