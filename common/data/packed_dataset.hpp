// A data set in its packed form: one file, memory-mapped, checksummed, read in place. Data larger
// than memory works because pages are the kernel's to evict. Immutable; any thread may read.
//
// Damage is found before a point is used. Files of up to OpenOptions::check_bytes_max are checked
// whole on opening; of larger ones the header and the table of checksums are, and each block of
// 1,024 points when it is first touched.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/data/packed_format.hpp"
#include "common/data/point_parser.hpp"
#include "common/result.hpp"

namespace gleaner {

// One point. Both lists ascend; values are parallel to features.
struct ExampleView {
  std::span<const std::uint32_t> labels;
  std::span<const std::uint32_t> features;
  std::span<const float> values;
};

struct OpenOptions {
  std::uint64_t check_bytes_max = std::uint64_t{1} << 30;
};

// The header's figures besides points, features, labels and the fingerprint.
struct PackedSummary {
  Dimensions used;                    // largest ids that occur, plus one
  std::uint64_t label_entries = 0;    // sum over all points
  std::uint64_t feature_entries = 0;  // sum over all points
  std::uint32_t labels_max = 0;       // most labels of any point
  std::uint32_t features_max = 0;     // most features of any point
  bool is_normalized = false;
  Irregularities irregularities;  // put right when it was packed
  std::uint64_t file_bytes = 0;
};

class PackedDataset {
 public:
  // Maps `path` and checks its header, sizes and checksums. The error names the file.
  static Result<std::unique_ptr<PackedDataset>> open(const std::string& path,
                                                     const OpenOptions& options = {});
  ~PackedDataset();
  PackedDataset(const PackedDataset&) = delete;
  PackedDataset& operator=(const PackedDataset&) = delete;

  [[nodiscard]] std::uint64_t points() const { return header_.points; }

  [[nodiscard]] std::uint32_t features() const { return header_.features; }

  [[nodiscard]] std::uint32_t labels() const { return header_.labels; }

  // XXH3 of the content; the same for the same points whatever text form they came from.
  [[nodiscard]] std::uint64_t fingerprint() const { return header_.fingerprint; }

  // Requires index < points(). In a file too large to be checked on opening, a point of a damaged
  // block ends the process with a sentence: verify() is the way to learn of damage as a value.
  [[nodiscard]] ExampleView example(std::uint64_t index) const;

  // Checks the blocks of these points, unless they have been already. Requires indices < points().
  Result<void> verify(std::span<const std::uint64_t> indices) const;
  Result<void> verify_all() const;

  [[nodiscard]] PackedSummary summary() const;
  // Names the source that the file was made from, as open_or_pack() writes it; empty for a file
  // packed by itself.
  [[nodiscard]] std::string source_key() const;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit PackedDataset(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] Error corrupt(const std::string& what) const;
  Result<void> map();
  Result<void> check_header();
  Result<void> check_block(std::uint64_t block) const;
  Result<void> ensure_block(std::uint64_t block) const;
  // Requires the row's block to be checked.
  [[nodiscard]] ExampleView row(std::uint64_t index) const;
  [[nodiscard]] bool is_row_valid(std::uint64_t index) const;

  std::string path_;
  const std::uint8_t* base_ = nullptr;
  std::size_t size_ = 0;
  packed::Header header_{};
  const std::uint64_t* offsets_ = nullptr;
  const std::uint64_t* blocks_ = nullptr;
  bool is_checked_ = false;                       // the whole file
  std::unique_ptr<std::atomic<bool>[]> checked_;  // by block, when the whole file is not
};

// True when the file begins like a packed one.
bool is_packed_file(const std::string& path);

// How often each label occurs: labels() counts.
std::vector<std::uint32_t> count_labels(const PackedDataset& dataset);

}  // namespace gleaner
