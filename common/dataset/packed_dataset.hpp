// A data set in its packed form: one file, memory-mapped, checksummed, read in place. Data larger
// than memory works because pages are the kernel's to evict. Immutable; any thread may read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

// One point. Both lists ascend; values are parallel to features.
struct ExampleView {
  std::span<const std::uint32_t> labels;
  std::span<const std::uint32_t> features;
  std::span<const float> values;
};

class PackedDataset {
 public:
  // Maps `path` and checks its header, sizes and checksums. The error names the file.
  static Result<std::unique_ptr<PackedDataset>> open(const std::string& path);
  ~PackedDataset();
  PackedDataset(const PackedDataset&) = delete;
  PackedDataset& operator=(const PackedDataset&) = delete;

  [[nodiscard]] std::uint64_t points() const;
  [[nodiscard]] std::uint32_t features() const;
  [[nodiscard]] std::uint32_t labels() const;
  // XXH3 of the content; the same for the same points whatever text form they came from.
  [[nodiscard]] std::uint64_t fingerprint() const;
  // Requires index < points().
  [[nodiscard]] ExampleView example(std::uint64_t index) const;

 private:
  struct Impl;
  explicit PackedDataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// How often each label occurs: labels() counts.
std::vector<std::uint32_t> count_labels(const PackedDataset& dataset);

}  // namespace gleaner
