#include "common/data/packed_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
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

namespace gleaner {

struct PackedDataset::Impl {
  std::string path;
  const std::uint8_t* base = nullptr;
  std::size_t size = 0;
  packed::Header header{};
  const std::uint64_t* offsets = nullptr;
  const std::uint64_t* blocks = nullptr;
  bool is_checked = false;                       // the whole file
  std::unique_ptr<std::atomic<bool>[]> checked;  // by block, when the whole file is not

  ~Impl() { os::unmap_file({base, size}); }

  [[nodiscard]] Error corrupt(const std::string& what) const {
    return {ErrorCode::kCorrupt,
            fmt::format("{}: damaged packed data set: {}; delete the file and pack it again", path,
                        what)};
  }

  // Requires the row's block to be checked.
  [[nodiscard]] ExampleView row(std::uint64_t index) const {
    const auto* words = reinterpret_cast<const std::uint32_t*>(base + offsets[index]);
    const std::uint32_t labels = words[0];
    const std::uint32_t features = words[1];
    const std::uint32_t* ids = words + 2 + labels;
    return {{words + 2, labels},
            {ids, features},
            {reinterpret_cast<const float*>(ids + features), features}};
  }

  Result<void> map();
  Result<void> check_header();
  Result<void> check_block(std::uint64_t block) const;
  Result<void> ensure_block(std::uint64_t block) const;
  [[nodiscard]] bool is_row_valid(std::uint64_t index) const;
};

namespace {

constexpr int kBadDataStatus = 3;  // exit status of the programs for bad data

bool ascends_below(std::span<const std::uint32_t> ids, std::uint32_t end) {
  for (std::size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] <= ids[i - 1]) return false;
  }
  return ids.empty() || ids.back() < end;
}

}  // namespace

Result<void> PackedDataset::Impl::map() {
  const std::optional<os::FileView> view = os::map_file(path);
  const int error = errno;
  if (!view) {
    const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Error{code, fmt::format("{}: cannot be opened: {}", path, explain_errno(error))};
  }
  base = static_cast<const std::uint8_t*>(view->begin);
  size = view->bytes;
  if (size < sizeof(packed::Header)) {
    return corrupt(
        fmt::format("it has {} bytes, its header alone has {}", size, sizeof(packed::Header)));
  }
  if (base == nullptr) {
    return Error{ErrorCode::kResources,
                 fmt::format("{}: cannot be mapped into memory: {}", path, explain_errno(error))};
  }
  return {};
}

// After this, the index, the checksums and the key lie inside the file.
Result<void> PackedDataset::Impl::check_header() {
  std::memcpy(&header, base, sizeof header);
  if (header.magic != packed::kMagic) return corrupt("it does not begin like one");
  if (header.version != packed::kVersion) {
    return Error{ErrorCode::kVersion,
                 fmt::format("{}: packed format version {}, this program reads version {}; pack "
                             "the text form again",
                             path, header.version, packed::kVersion)};
  }
  if (header.header_checksum != packed::checksum_of(header)) {
    return corrupt("the header fails its checksum");
  }
  const bool is_sound =
      header.points > 0 && header.points <= packed::kPointsMax && header.features > 0 &&
      header.features <= kFeaturesMax && header.labels > 0 && header.labels <= kLabelsMax &&
      header.features_used <= header.features && header.labels_used <= header.labels &&
      header.key_bytes <= packed::kSourceKeyBytesMax && header.index_offset % 8 == 0 &&
      header.index_offset >= packed::kRowsOffset && header.index_offset < size &&
      header.points < (size - header.index_offset) / 8 &&
      header.blocks_offset == header.index_offset + 8 * (header.points + 1) &&
      header.key_offset == header.blocks_offset + 8 * packed::block_count(header.points) &&
      size == header.key_offset + header.key_bytes;
  if (!is_sound) return corrupt("its size does not fit its header; it may be cut short");
  offsets = reinterpret_cast<const std::uint64_t*>(base + header.index_offset);
  blocks = reinterpret_cast<const std::uint64_t*>(base + header.blocks_offset);
  if (checksum(base + header.key_offset, header.key_bytes) != header.key_checksum) {
    return corrupt("the cache key fails its checksum");
  }
  if (checksum(blocks, 8 * packed::block_count(header.points)) != header.blocks_checksum) {
    return corrupt("the table of checksums fails its own");
  }
  return {};
}

bool PackedDataset::Impl::is_row_valid(std::uint64_t index) const {
  const std::uint64_t bytes = offsets[index + 1] - offsets[index];
  const auto* words = reinterpret_cast<const std::uint32_t*>(base + offsets[index]);
  if (bytes != packed::row_bytes(words[0], words[1])) return false;
  const ExampleView view = row(index);
  return ascends_below(view.labels, header.labels) &&
         ascends_below(view.features, header.features) &&
         std::all_of(view.values.begin(), view.values.end(),
                     [](float value) { return std::isfinite(value); });
}

Result<void> PackedDataset::Impl::check_block(std::uint64_t block) const {
  const std::uint64_t first = block * packed::kBlockPoints;
  const std::uint64_t last = std::min(first + packed::kBlockPoints, header.points);
  const auto failed = [&](const char* what) {
    return corrupt(fmt::format("examples {} to {} {}", first, last - 1, what));
  };
  bool is_sound = offsets[first] >= packed::kRowsOffset && offsets[last] <= header.index_offset;
  for (std::uint64_t i = first; i < last && is_sound; ++i) {
    is_sound = offsets[i] % 4 == 0 && offsets[i] <= header.index_offset &&
               offsets[i + 1] >= offsets[i] + 8;
  }
  if (!is_sound) return failed("have offsets that lie outside the rows");
  ChecksumStream sum;
  sum.add(base + offsets[first], offsets[last] - offsets[first]);
  sum.add(offsets + first, (last - first + 1) * sizeof(std::uint64_t));
  if (sum.value() != blocks[block]) return failed("fail their checksum");
  // A checksum says that the bytes are those written, not that a sound program wrote them.
  for (std::uint64_t i = first; i < last; ++i) {
    if (!is_row_valid(i)) return failed("break the format");
  }
  return {};
}

Result<void> PackedDataset::Impl::ensure_block(std::uint64_t block) const {
  if (checked[block].load(std::memory_order_acquire)) return {};
  Result<void> sound = check_block(block);
  if (sound) checked[block].store(true, std::memory_order_release);
  return sound;
}

PackedDataset::PackedDataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PackedDataset::~PackedDataset() = default;

Result<std::unique_ptr<PackedDataset>> PackedDataset::open(const std::string& path,
                                                           const OpenOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  Result<void> mapped = impl->map();
  if (!mapped) return mapped.error();
  Result<void> headed = impl->check_header();
  if (!headed) return headed.error();
  std::unique_ptr<PackedDataset> dataset(new PackedDataset(std::move(impl)));
  Impl& state = *dataset->impl_;
  const std::uint64_t blocks = packed::block_count(state.header.points);
  state.checked = std::make_unique<std::atomic<bool>[]>(blocks);
  if (state.size <= options.check_bytes_max) {
    Result<void> sound = dataset->verify_all();
    if (!sound) return sound.error();
    state.is_checked = true;
  } else {
    // Batches visit points in random order: reading ahead would fetch what nobody asked for.
    os::expect_random_visits({state.base, state.size});
  }
  return dataset;
}

std::uint64_t PackedDataset::points() const {
  return impl_->header.points;
}

std::uint32_t PackedDataset::features() const {
  return impl_->header.features;
}

std::uint32_t PackedDataset::labels() const {
  return impl_->header.labels;
}

std::uint64_t PackedDataset::fingerprint() const {
  return impl_->header.fingerprint;
}

const std::string& PackedDataset::path() const {
  return impl_->path;
}

ExampleView PackedDataset::example(std::uint64_t index) const {
  GLEANER_CHECK(index < impl_->header.points);
  if (!impl_->is_checked) {
    const Result<void> sound = impl_->ensure_block(index / packed::kBlockPoints);
    if (!sound) {
      // There is no value to give back, and training on a damaged point would go unnoticed.
      std::fprintf(stderr, "gleaner: %s\n", sound.error().message.c_str());
      std::_Exit(kBadDataStatus);
    }
  }
  return impl_->row(index);
}

Result<void> PackedDataset::verify(std::span<const std::uint64_t> indices) const {
  if (impl_->is_checked) return {};
  for (const std::uint64_t index : indices) {
    GLEANER_CHECK(index < impl_->header.points);
    Result<void> sound = impl_->ensure_block(index / packed::kBlockPoints);
    if (!sound) return sound;
  }
  return {};
}

Result<void> PackedDataset::verify_all() const {
  if (impl_->is_checked) return {};
  for (std::uint64_t block = 0; block < packed::block_count(points()); ++block) {
    Result<void> sound = impl_->ensure_block(block);
    if (!sound) return sound;
  }
  return {};
}

PackedSummary PackedDataset::summary() const {
  const packed::Header& header = impl_->header;
  PackedSummary summary;
  summary.used = {header.features_used, header.labels_used};
  summary.label_entries = header.label_entries;
  summary.feature_entries = header.feature_entries;
  summary.labels_max = header.labels_max;
  summary.features_max = header.features_max;
  summary.is_normalized = (header.flags & packed::kFlagNormalized) != 0;
  summary.irregularities = {header.unsorted_points, header.repeated_labels, header.zero_values};
  summary.file_bytes = impl_->size;
  return summary;
}

std::string PackedDataset::source_key() const {
  const auto* key = reinterpret_cast<const char*>(impl_->base + impl_->header.key_offset);
  return {key, static_cast<std::size_t>(impl_->header.key_bytes)};
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
