// A data set that trains within a second: every label has its own features. It lies in a temporary
// folder that the object removes.
#pragma once

#include <memory>
#include <string>

#include "common/data/packed_dataset.hpp"
#include "common/result.hpp"

namespace gleaner {

class TinyDataset {
 public:
  static Result<std::unique_ptr<TinyDataset>> make();
  ~TinyDataset();
  TinyDataset(const TinyDataset&) = delete;
  TinyDataset& operator=(const TinyDataset&) = delete;

  [[nodiscard]] const PackedDataset& train() const { return *train_; }

  [[nodiscard]] const PackedDataset& test() const { return *test_; }

 private:
  TinyDataset() = default;
  Result<std::unique_ptr<PackedDataset>> write(const std::string& name, std::uint64_t points,
                                               std::uint64_t stream) const;

  std::string folder_;
  std::unique_ptr<PackedDataset> train_;
  std::unique_ptr<PackedDataset> test_;
};

}  // namespace gleaner
