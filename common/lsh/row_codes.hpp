// The codes of a shard's committed rows. Whoever has a row's weights has its codes: holders compute
// them when they commit, the store when it folds, and both find the same.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/lsh/sim_hash.hpp"

namespace gleaner {

// One thread at a time.
class RowCodes {
 public:
  // For a run that samples by LSH; otherwise rows have no codes. Uses the machine's fastest
  // kernels.
  explicit RowCodes(const ModelConfig& config);

  // `values` has `row_width` floats a row, the first H of which are its weights. Returns
  // config.tables codes a row, or none in a run without tables. Valid until the next call.
  std::span<const std::uint32_t> of(std::span<const float> values, std::size_t row_width);

 private:
  std::size_t tables_ = 0;
  std::unique_ptr<SimHash> sim_hash_;
  HashScratch scratch_;
  std::vector<const float*> rows_;
  std::vector<std::uint32_t> codes_;
};

}  // namespace gleaner
