// A data set in its packed form: one memory-mapped file with checksums, read in place. Data may be
// larger than memory, because the kernel can evict pages. Immutable; any thread may read.
//
// Damage is found before an example is used. A file of up to OpenOptions::check_bytes_max is
// checked completely on opening. Of a larger file, opening checks the header and the table of
// checksums; each block of 1,024 examples is checked at its first use.
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
#include "common/os/files.hpp"
#include "common/result.hpp"

namespace gleaner {

// One example. Both lists ascend; values are parallel to features.
struct ExampleView {
  std::span<const std::uint32_t> labels;
  std::span<const std::uint32_t> features;
  std::span<const float> values;
};

struct OpenOptions {
  std::uint64_t check_bytes_max = std::uint64_t{1} << 30;
};

// Figures of the header besides points, features, labels and fingerprint.
struct PackedSummary {
  Dimensions used;                    // largest ids in use, plus one
  std::uint64_t label_entries = 0;    // sum over all examples
  std::uint64_t feature_entries = 0;  // sum over all examples
  std::uint32_t labels_max = 0;       // most labels of any example
  std::uint32_t features_max = 0;     // most features of any example
  bool is_normalized = false;
  Irregularities irregularities;  // corrected when it was packed
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

  // XXH3 of the content; equal for equal examples in any text form.
  [[nodiscard]] std::uint64_t fingerprint() const { return header_.fingerprint; }

  // Requires index < points(). An example in a damaged block of a file that was not checked on
  // opening ends the process with a message; verify() returns damage as an error.
  [[nodiscard]] ExampleView example(std::uint64_t index) const;

  // Checks the blocks of these examples, unless checked before. Requires indices < points().
  Result<void> verify(std::span<const std::uint64_t> indices) const;
  Result<void> verify_all() const;
  // Whether every example read until now was the file's: an error once another program has written
  // to the file or cut it short, unless its content is as before.
  Result<void> check_unchanged() const;

  [[nodiscard]] PackedSummary summary() const;
  // Identifies the source of the file (open_or_pack.hpp); empty for a file packed explicitly.
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
  os::FileView view_;
  mutable std::atomic<std::uint64_t> stamp_{0};  // of the file when its content was last checked
  const std::uint8_t* base_ = nullptr;
  std::size_t size_ = 0;
  packed::Header header_{};
  const std::uint64_t* offsets_ = nullptr;
  const std::uint64_t* blocks_ = nullptr;
  bool is_checked_ = false;                       // whether the whole file was checked
  std::unique_ptr<std::atomic<bool>[]> checked_;  // by block, if the whole file was not checked
};

// Whether the file begins like a packed file.
bool is_packed_file(const std::string& path);

// How often each label occurs: labels() counts.
std::vector<std::uint32_t> count_labels(const PackedDataset& dataset);

}  // namespace gleaner
