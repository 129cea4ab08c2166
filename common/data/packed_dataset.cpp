#include "common/data/packed_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "common/data/atomic_file.hpp"
#include "common/data/packed_format.hpp"
#include "common/limits.hpp"
#include "common/os/files.hpp"

#define XXH_STATIC_LINKING_ONLY  // for a state that needs no allocation of its own
#include <xxhash.h>

namespace gleaner {
namespace {

constexpr int kBadDataStatus = 3;  // exit status of the programs for bad data

bool ascends_below(std::span<const std::uint32_t> ids, std::uint32_t end) {
  for (std::size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] <= ids[i - 1]) return false;
  }
  return ids.empty() || ids.back() < end;
}

}  // namespace

std::uint64_t checksum(const void* bytes, std::size_t count) {
  return XXH3_64bits(bytes, count);
}

struct ChecksumStream::State {
  XXH3_state_t xxh3;
};

ChecksumStream::ChecksumStream() : state_(std::make_unique<State>()) {
  reset();
}

ChecksumStream::~ChecksumStream() = default;

void ChecksumStream::reset() {
  XXH3_64bits_reset(&state_->xxh3);
}

void ChecksumStream::add(const void* bytes, std::size_t count) {
  XXH3_64bits_update(&state_->xxh3, bytes, count);
}

std::uint64_t ChecksumStream::value() const {
  return XXH3_64bits_digest(&state_->xxh3);
}

PackedDataset::~PackedDataset() {
  os::unmap_file(view_);
}

Error PackedDataset::corrupt(const std::string& what) const {
  return {ErrorCode::kCorrupt,
          fmt::format("{}: damaged packed data set: {}; delete the file and pack it again", path_,
                      what)};
}

ExampleView PackedDataset::row(std::uint64_t index) const {
  const auto* words = reinterpret_cast<const std::uint32_t*>(base_ + offsets_[index]);
  const std::uint32_t labels = words[0];
  const std::uint32_t features = words[1];
  const std::uint32_t* ids = words + 2 + labels;
  return {{words + 2, labels},
          {ids, features},
          {reinterpret_cast<const float*>(ids + features), features}};
}

Result<void> PackedDataset::map() {
  const std::optional<os::FileView> view = os::map_file(path_);
  const int error = errno;
  if (!view) {
    const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, fmt::format("{}: cannot be opened: {}", path_, explain_errno(error, path_))};
  }
  view_ = *view;
  stamp_ = os::file_stamp(view_);
  base_ = static_cast<const std::uint8_t*>(view->begin);
  size_ = view->bytes;
  if (size_ < sizeof(packed::Header)) {
    return corrupt(
        fmt::format("it has {} bytes, its header alone has {}", size_, sizeof(packed::Header)));
  }
  if (base_ == nullptr) {
    return Error{ErrorCode::kResources, fmt::format("{}: cannot be mapped into memory: {}", path_,
                                                    explain_errno(error, path_))};
  }
  return {};
}

// Ensures that index, checksums and key lie inside the file.
Result<void> PackedDataset::check_header() {
  std::memcpy(&header_, base_, sizeof header_);
  if (header_.magic != packed::kMagic) return corrupt("it does not begin like one");
  if (header_.version != packed::kVersion) {
    return Error{ErrorCode::kVersion,
                 fmt::format("{}: packed format version {}, this program reads version {}; pack "
                             "the text form again",
                             path_, header_.version, packed::kVersion)};
  }
  if (header_.header_checksum != packed::checksum_of(header_)) {
    return corrupt("the header fails its checksum");
  }
  const bool is_sound =
      header_.points > 0 && header_.points <= packed::kPointsMax && header_.features > 0 &&
      header_.features <= kFeaturesMax && header_.labels > 0 && header_.labels <= kLabelsMax &&
      header_.features_used <= header_.features && header_.labels_used <= header_.labels &&
      header_.key_bytes <= packed::kSourceKeyBytesMax && header_.index_offset % 8 == 0 &&
      header_.index_offset >= packed::kRowsOffset && header_.index_offset < size_ &&
      header_.points < (size_ - header_.index_offset) / 8 &&
      header_.blocks_offset == header_.index_offset + 8 * (header_.points + 1) &&
      header_.key_offset == header_.blocks_offset + 8 * packed::block_count(header_.points) &&
      size_ == header_.key_offset + header_.key_bytes;
  if (!is_sound) return corrupt("its size does not fit its header; it may be cut short");
  offsets_ = reinterpret_cast<const std::uint64_t*>(base_ + header_.index_offset);
  blocks_ = reinterpret_cast<const std::uint64_t*>(base_ + header_.blocks_offset);
  if (checksum(base_ + header_.key_offset, header_.key_bytes) != header_.key_checksum) {
    return corrupt("the cache key fails its checksum");
  }
  if (checksum(blocks_, 8 * packed::block_count(header_.points)) != header_.blocks_checksum) {
    return corrupt("the table of checksums fails its checksum");
  }
  return {};
}

bool PackedDataset::is_row_valid(std::uint64_t index) const {
  const std::uint64_t bytes = offsets_[index + 1] - offsets_[index];
  const auto* words = reinterpret_cast<const std::uint32_t*>(base_ + offsets_[index]);
  if (bytes != packed::row_bytes(words[0], words[1])) return false;
  const ExampleView view = row(index);
  return ascends_below(view.labels, header_.labels) &&
         ascends_below(view.features, header_.features) &&
         std::all_of(view.values.begin(), view.values.end(),
                     [](float value) { return std::isfinite(value); });
}

Result<void> PackedDataset::check_block(std::uint64_t block) const {
  const std::uint64_t first = block * packed::kBlockPoints;
  const std::uint64_t last = std::min(first + packed::kBlockPoints, header_.points);
  const auto failed = [&](const char* what) {
    return corrupt(fmt::format("examples {} to {} {}", first, last - 1, what));
  };
  bool is_sound = offsets_[first] >= packed::kRowsOffset && offsets_[last] <= header_.index_offset;
  for (std::uint64_t i = first; i < last && is_sound; ++i) {
    is_sound = offsets_[i] % 4 == 0 && offsets_[i] <= header_.index_offset &&
               offsets_[i + 1] >= offsets_[i] + 8;
  }
  if (!is_sound) return failed("have offsets that lie outside the rows");
  ChecksumStream sum;
  sum.add(base_ + offsets_[first], offsets_[last] - offsets_[first]);
  sum.add(offsets_ + first, (last - first + 1) * sizeof(std::uint64_t));
  if (sum.value() != blocks_[block]) return failed("fail their checksum");
  // A valid checksum does not prove that a correct program wrote the bytes.
  for (std::uint64_t i = first; i < last; ++i) {
    if (!is_row_valid(i)) return failed("break the format");
  }
  return {};
}

Result<void> PackedDataset::ensure_block(std::uint64_t block) const {
  if (checked_[block].load(std::memory_order_acquire)) return {};
  Result<void> sound = check_block(block);
  if (sound) checked_[block].store(true, std::memory_order_release);
  return sound;
}

Result<std::unique_ptr<PackedDataset>> PackedDataset::open(const std::string& path,
                                                           const OpenOptions& options) {
  std::unique_ptr<PackedDataset> dataset(new PackedDataset(path));
  if (auto mapped = dataset->map(); !mapped) return mapped.error();
  if (auto headed = dataset->check_header(); !headed) return headed.error();
  dataset->checked_ =
      std::make_unique<std::atomic<bool>[]>(packed::block_count(dataset->header_.points));
  if (dataset->size_ <= options.check_bytes_max) {
    if (auto sound = dataset->verify_all(); !sound) return sound.error();
    dataset->is_checked_ = true;
  } else {
    // Batches visit examples in random order, so reading ahead would be useless.
    os::expect_random_visits(dataset->view_);
  }
  return dataset;
}

ExampleView PackedDataset::example(std::uint64_t index) const {
  GLEANER_CHECK(index < header_.points);
  if (!is_checked_) {
    const Result<void> sound = ensure_block(index / packed::kBlockPoints);
    if (!sound) {
      // There is no error value here, and training on a damaged example would go unnoticed.
      std::fprintf(stderr, "gleaner: %s\n", sound.error().message.c_str());
      std::_Exit(kBadDataStatus);
    }
  }
  return row(index);
}

Result<void> PackedDataset::verify(std::span<const std::uint64_t> indices) const {
  if (is_checked_) return {};
  for (const std::uint64_t index : indices) {
    GLEANER_CHECK(index < header_.points);
    if (auto sound = ensure_block(index / packed::kBlockPoints); !sound) return sound;
  }
  return {};
}

Result<void> PackedDataset::verify_all() const {
  if (is_checked_) return {};
  for (std::uint64_t block = 0; block < packed::block_count(points()); ++block) {
    if (auto sound = ensure_block(block); !sound) return sound;
  }
  return {};
}

Result<void> PackedDataset::check_unchanged() const {
  const std::uint64_t stamp = os::file_stamp(view_);
  if (stamp == stamp_.load(std::memory_order_relaxed)) return {};
  // A change of owner or mode has changed the stamp too.
  bool is_same = os::file_bytes(view_.file) == size_ &&
                 std::memcmp(base_, &header_, sizeof header_) == 0 &&
                 checksum(blocks_, 8 * packed::block_count(points())) == header_.blocks_checksum;
  for (std::uint64_t block = 0; is_same && block < packed::block_count(points()); ++block) {
    is_same = (!is_checked_ && !checked_[block]) || check_block(block).ok();
  }
  if (is_same) {
    stamp_.store(stamp, std::memory_order_relaxed);
    return {};
  }
  return Error{ErrorCode::kInvalidData, path_ + std::string(os::kChangedWhileRead)};
}

PackedSummary PackedDataset::summary() const {
  PackedSummary summary;
  summary.used = {header_.features_used, header_.labels_used};
  summary.label_entries = header_.label_entries;
  summary.feature_entries = header_.feature_entries;
  summary.labels_max = header_.labels_max;
  summary.features_max = header_.features_max;
  summary.is_normalized = (header_.flags & packed::kFlagNormalized) != 0;
  summary.irregularities = {header_.unsorted_points, header_.repeated_labels, header_.zero_values};
  summary.file_bytes = size_;
  return summary;
}

std::string PackedDataset::source_key() const {
  const auto* key = reinterpret_cast<const char*>(base_ + header_.key_offset);
  return {key, static_cast<std::size_t>(header_.key_bytes)};
}

bool is_packed_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::uint64_t magic = 0;
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(&magic), sizeof magic);
  return file && magic == packed::kMagic;
}

std::vector<std::uint32_t> count_labels(const PackedDataset& dataset) {
  std::vector<std::uint32_t> counts(dataset.labels(), 0);
  for (std::uint64_t i = 0; i < dataset.points(); ++i) {
    for (const std::uint32_t label : dataset.example(i).labels) ++counts[label];
  }
  return counts;
}

}  // namespace gleaner
