// Tensors of a model without a hidden layer: each label's wide row, as a row of a sparse matrix in
// CSR form. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/result.hpp"
#include "storage/keep/model_file.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// The places of wide rows in a file, by label.
struct WideShape {
  std::vector<std::uint32_t>
      offsets;  // labels + 1: label l owns entries [offsets[l], offsets[l+1])

  [[nodiscard]] std::uint64_t entries() const { return offsets.back(); }
};

// Reads all rows of the last checkpoint. kResources for more entries than 32 bits count.
Result<WideShape> wide_shape(RunStore& run);

// The first tensors of a file, in this order: wide.offsets, wide.features, wide.weights, wide.own,
// output.bias and label_counts.
std::vector<TensorSpec> wide_tensors(const WideShape& shape);

// Fills the tensors of wide_tensors(). Calls `shard_done` after each shard.
Result<void> fill_wide(RunStore& run, const WideShape& shape, ModelFile& file,
                       const std::function<void()>& shard_done);

}  // namespace gleaner
