#include "common/data/packed_writer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gleaner {

void normalize_row(std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * double{value};
  if (sum == 0) return;
  const double length = std::sqrt(sum);
  for (float& value : values) value = static_cast<float>(double{value} / length);
}

PackedWriter::PackedWriter(std::unique_ptr<AtomicFile> rows, std::unique_ptr<AtomicFile> index,
                           bool normalize)
    : rows_(std::move(rows)), index_(std::move(index)), normalize_(normalize) {
  header_.magic = packed::kMagic;
  header_.version = packed::kVersion;
  header_.flags = normalize ? packed::kFlagNormalized : 0;
}

Result<std::unique_ptr<PackedWriter>> PackedWriter::create(const std::string& path,
                                                           bool normalize) {
  Result<std::unique_ptr<AtomicFile>> rows = AtomicFile::create(path);
  if (!rows) return rows.error();
  Result<std::unique_ptr<AtomicFile>> index = AtomicFile::create(path);
  if (!index) return index.error();
  std::unique_ptr<PackedWriter> writer(
      new PackedWriter(std::move(*rows), std::move(*index), normalize));
  // Room for the header, which is known last.
  Result<void> written = writer->rows_->write(&writer->header_, sizeof(packed::Header));
  if (!written) return written.error();
  return writer;
}

Result<void> PackedWriter::add(const Point& point) {
  const auto labels = static_cast<std::uint32_t>(point.labels.size());
  const auto features = static_cast<std::uint32_t>(point.features.size());
  values_ = point.values;
  if (normalize_) normalize_row(values_);
  row_.resize(packed::row_bytes(labels, features) / 4);
  row_[0] = labels;
  row_[1] = features;
  std::copy(point.labels.begin(), point.labels.end(), row_.begin() + 2);
  std::copy(point.features.begin(), point.features.end(), row_.begin() + 2 + labels);
  if (features > 0)
    std::memcpy(row_.data() + 2 + labels + features, values_.data(), std::size_t{4} * features);

  const std::uint64_t offset = rows_->size();
  block_offsets_.push_back(offset);
  if (auto indexed = index_->write(&offset, sizeof offset); !indexed) return indexed;
  if (auto written = rows_->write(row_.data(), row_.size() * 4); !written) return written;
  content_.add(row_.data(), row_.size() * 4);
  block_rows_.add(row_.data(), row_.size() * 4);

  ++header_.points;
  header_.label_entries += labels;
  header_.feature_entries += features;
  header_.labels_max = std::max(header_.labels_max, labels);
  header_.features_max = std::max(header_.features_max, features);
  if (labels > 0) header_.labels_used = std::max(header_.labels_used, point.labels.back() + 1);
  if (features > 0) {
    header_.features_used = std::max(header_.features_used, point.features.back() + 1);
  }
  if (header_.points % packed::kBlockPoints == 0) return end_block();
  return {};
}

// A block's checksum covers its rows, then the offsets of the rows and of their end.
Result<void> PackedWriter::end_block() {
  block_offsets_.push_back(rows_->size());
  block_rows_.add(block_offsets_.data(), block_offsets_.size() * sizeof(std::uint64_t));
  blocks_.push_back(block_rows_.value());
  block_rows_.reset();
  block_offsets_.clear();
  return {};
}

Result<void> PackedWriter::append_index() {
  const std::uint64_t end = rows_->size();
  if (auto closed = index_->write(&end, sizeof end); !closed) return closed;
  // Rows are multiples of four bytes; offsets must be aligned to eight.
  const std::uint64_t zero = 0;
  if (auto padded = rows_->write(&zero, (8 - end % 8) % 8); !padded) return padded;
  header_.index_offset = rows_->size();
  std::vector<char> piece(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < index_->size(); at += piece.size()) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), index_->size() - at));
    if (auto read = index_->read_back(at, piece.data(), count); !read) return read;
    if (auto written = rows_->write(piece.data(), count); !written) return written;
  }
  return {};
}

Result<void> PackedWriter::finish(Dimensions dimensions, const Irregularities& irregularities,
                                  const std::string& key, AtomicFile::Existing existing) {
  GLEANER_CHECK(header_.features_used <= dimensions.features);
  GLEANER_CHECK(header_.labels_used <= dimensions.labels);
  GLEANER_CHECK(key.size() <= packed::kSourceKeyBytesMax);
  if (!block_offsets_.empty()) {
    if (auto ended = end_block(); !ended) return ended;
  }
  if (auto indexed = append_index(); !indexed) return indexed;
  header_.blocks_offset = rows_->size();
  header_.blocks_checksum = checksum(blocks_.data(), blocks_.size() * sizeof(std::uint64_t));
  Result<void> written = rows_->write(blocks_.data(), blocks_.size() * sizeof(std::uint64_t));
  if (!written) return written;
  header_.key_offset = rows_->size();
  header_.key_bytes = key.size();
  header_.key_checksum = checksum(key.data(), key.size());
  if (auto keyed = rows_->write(key.data(), key.size()); !keyed) return keyed;
  header_.features = dimensions.features;
  header_.labels = dimensions.labels;
  header_.unsorted_points = irregularities.unsorted_points;
  header_.repeated_labels = irregularities.repeated_labels;
  header_.zero_values = irregularities.zero_values;
  // The fingerprint covers the content, not its layout or source.
  content_.add(&header_.points, sizeof header_.points);
  content_.add(&dimensions.features, sizeof dimensions.features);
  content_.add(&dimensions.labels, sizeof dimensions.labels);
  header_.fingerprint = content_.value();
  header_.header_checksum = packed::checksum_of(header_);
  if (auto headed = rows_->rewrite(0, &header_, sizeof header_); !headed) return headed;
  return rows_->commit(existing);
}

}  // namespace gleaner
