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

// How wide rows lie in a file, by label.
struct WideShape {
  std::vector<std::uint32_t>
      offsets;  // labels + 1: label l owns entries [offsets[l], offsets[l+1])

  [[nodiscard]] std::uint64_t entries() const { return offsets.back(); }
};

// Goes through all rows of the last checkpoint. kResources for more entries than 32 bits count.
Result<WideShape> wide_shape(RunStore& run);

// wide.offsets, wide.features, wide.weights and wide.own, output.bias and label_counts: these
// names, in this order, are the first of a file.
std::vector<TensorSpec> wide_tensors(const WideShape& shape);

// Fills the tensors of wide_tensors(), which are the file's first. `shard_done`: after each shard.
Result<void> fill_wide(RunStore& run, const WideShape& shape, ModelFile& file,
                       const std::function<void()>& shard_done);

}  // namespace gleaner
