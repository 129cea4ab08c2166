#include "schema/compact_lists.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>

#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "common/work/bit_stream.hpp"

namespace gleaner {
namespace {

// Seven bits per byte, lowest first; the high bit says that another byte follows.
void put_varint(std::uint32_t value, Bytes& target) {
  while (value >= 0x80) {
    target.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  target.push_back(static_cast<std::uint8_t>(value));
}

class VarintReader {
 public:
  VarintReader(const char* field, ByteView source) : field_(field), source_(source) {}

  [[nodiscard]] bool at_end() const { return position_ == source_.size(); }

  std::uint32_t get() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      if (at_end()) malformed(field_, "cut off within a number");
      const std::uint8_t byte = source_[position_++];
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte >= 0x80) continue;
      if (byte == 0 && shift > 0) malformed(field_, "a number longer than needed");
      if (value > 0xffffffffu) break;
      return static_cast<std::uint32_t>(value);
    }
    malformed(field_, "a number beyond 32 bits");
  }

 private:
  const char* field_;
  ByteView source_;
  std::size_t position_ = 0;
};

// u8 width, u16 codes per row.
constexpr std::size_t kLevelsHeaderBytes = 2;
// Flag in the header: the levels are a zstd frame.
constexpr std::size_t kIsCompressed = 0x8000;
static_assert(kHiddenMax < kIsCompressed);
// zstd's lowest level: entropy coding suffices, there are no repeated sequences to find.
constexpr int kLevelsEffort = 1;
constexpr int kLevelOffset = kDeltaLevelMax + 1;
constexpr std::size_t kCodesHeaderBytes = 3;
constexpr unsigned kCodeWidthMax = 32;
static_assert(kTablesMax <= 0xffff, "codes a row fit their field");

// At least 1, so that a message's size bounds the memory for reading it.
unsigned width_for(std::uint32_t bits) {
  return static_cast<unsigned>(std::max(1, static_cast<int>(std::bit_width(bits))));
}

}  // namespace

Bytes pack_counts(const std::vector<std::uint32_t>& counts) {
  Bytes packed;
  packed.reserve(counts.size());
  for (const std::uint32_t count : counts) put_varint(count, packed);
  return packed;
}

std::vector<std::uint32_t> unpack_counts(const char* field, ByteView packed,
                                         std::size_t count_max) {
  // Each number has exactly one byte below 0x80, its last.
  const auto count = static_cast<std::size_t>(
      std::count_if(packed.begin(), packed.end(), [](std::uint8_t byte) { return byte < 0x80; }));
  if (count > count_max) malformed(field, "{} entries, at most {}", count, count_max);
  std::vector<std::uint32_t> counts;
  counts.reserve(count);
  VarintReader reader(field, packed);
  while (!reader.at_end()) counts.push_back(reader.get());
  return counts;
}

Bytes pack_positives(const Positives& positives) {
  const auto& offsets = positives.offsets;
  GLEANER_CHECK(!offsets.empty() && offsets.front() == 0 &&
                offsets.back() == positives.neurons.size());
  Bytes packed;
  packed.reserve(offsets.size() + 2 * positives.neurons.size());
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    GLEANER_CHECK(offsets[i] <= offsets[i + 1] && offsets[i + 1] <= offsets.back());
    put_varint(offsets[i + 1] - offsets[i], packed);
    std::uint64_t lowest = 0;  // lower bound of the next neuron
    for (std::size_t j = offsets[i]; j < offsets[i + 1]; ++j) {
      const std::uint32_t neuron = positives.neurons[j];
      GLEANER_CHECK(neuron >= lowest);
      put_varint(neuron - static_cast<std::uint32_t>(lowest), packed);
      lowest = std::uint64_t{neuron} + 1;
    }
  }
  return packed;
}

Positives unpack_positives(const char* field, ByteView packed, std::uint32_t id_end) {
  Positives positives;
  positives.offsets.push_back(0);
  VarintReader reader(field, packed);
  while (!reader.at_end()) {
    if (positives.offsets.size() > kBatchExamplesMax) {
      malformed(field, "more than {} examples", kBatchExamplesMax);
    }
    const std::uint32_t labels = reader.get();
    if (labels > kPositivesPerBatchMax - positives.neurons.size()) {
      malformed(field, "more than {} labels", kPositivesPerBatchMax);
    }
    std::uint64_t lowest = 0;
    for (std::uint32_t i = 0; i < labels; ++i) {
      const std::uint64_t neuron = lowest + reader.get();
      if (neuron >= id_end) malformed(field, "{} is beyond {}", neuron, id_end);
      positives.neurons.push_back(static_cast<std::uint32_t>(neuron));
      lowest = neuron + 1;
    }
    positives.offsets.push_back(static_cast<std::uint32_t>(positives.neurons.size()));
  }
  return positives;
}

Bytes pack_levels(const std::vector<std::int8_t>& levels, std::size_t rows) {
  if (levels.empty()) return {};
  GLEANER_CHECK(rows > 0 && levels.size() % rows == 0 && levels.size() / rows <= kHiddenMax);
  Bytes packed(kLevelsHeaderBytes + (levels.size() + 1) / 2);
  store_le(static_cast<std::uint16_t>(levels.size() / rows), packed.data());
  std::uint8_t* stream = packed.data() + kLevelsHeaderBytes;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    GLEANER_CHECK(is_delta_level(levels[i]));
    const unsigned nibble = static_cast<unsigned>(levels[i] + kLevelOffset);
    stream[i / 2] = static_cast<std::uint8_t>(stream[i / 2] | nibble << (i % 2 * 4));
  }
  return packed;
}

Bytes pack_levels_small(const std::vector<std::int8_t>& levels, std::size_t rows) {
  Bytes plain = pack_levels(levels, rows);
  if (plain.empty()) return plain;
  const std::size_t stream_bytes = plain.size() - kLevelsHeaderBytes;
  Bytes small(kLevelsHeaderBytes + ZSTD_compressBound(stream_bytes));
  const std::size_t bytes =
      ZSTD_compress(small.data() + kLevelsHeaderBytes, small.size() - kLevelsHeaderBytes,
                    plain.data() + kLevelsHeaderBytes, stream_bytes, kLevelsEffort);
  if (ZSTD_isError(bytes) != 0 || bytes >= stream_bytes) return plain;
  store_le(static_cast<std::uint16_t>(levels.size() / rows | kIsCompressed), small.data());
  small.resize(kLevelsHeaderBytes + bytes);
  return small;
}

std::vector<std::int8_t> unpack_levels(const char* field, ByteView packed, std::size_t rows) {
  if (packed.empty()) return {};
  if (packed.size() < kLevelsHeaderBytes) malformed(field, "cut off within the header");
  const std::size_t header = load_le<std::uint16_t>(packed.data());
  const std::size_t per_row = header & ~kIsCompressed;
  if (per_row == 0 || per_row > kHiddenMax) malformed(field, "{} levels a row", per_row);
  const std::size_t count = rows * per_row;
  ByteView stream = packed.subspan(kLevelsHeaderBytes);
  Bytes plain;
  if ((header & kIsCompressed) != 0) {
    // The rows determine the output's size, whatever the bytes claim.
    if (count / 2 > kFrameBytesMax) malformed(field, "{} rows of {} levels", rows, per_row);
    plain.resize((count + 1) / 2);
    const std::size_t bytes =
        ZSTD_decompress(plain.data(), plain.size(), stream.data(), stream.size());
    if (ZSTD_isError(bytes) != 0) malformed(field, "{}", ZSTD_getErrorName(bytes));
    plain.resize(bytes);
    stream = plain;
  }
  if (rows == 0 || stream.size() != (count + 1) / 2) {
    malformed(field, "{} bytes for {} rows of {} levels", stream.size(), rows, per_row);
  }
  std::vector<std::int8_t> levels(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int nibble = stream[i / 2] >> (i % 2 * 4) & 0xf;
    levels[i] = static_cast<std::int8_t>(nibble - kLevelOffset);
    if (!is_delta_level(levels[i])) malformed(field, "entry {} is {}", i, levels[i]);
  }
  if (count % 2 != 0 && stream.back() >> 4 != 0) {
    malformed(field, "the last byte's padding is not zero");
  }
  return levels;
}

Bytes pack_codes(const std::vector<std::uint32_t>& codes, std::size_t rows) {
  if (codes.empty()) return {};
  GLEANER_CHECK(rows > 0 && codes.size() % rows == 0 && codes.size() / rows <= kTablesMax);
  GLEANER_CHECK(codes.size() <= kCodesPerMessageMax);
  std::uint32_t bits = 0;
  for (const std::uint32_t code : codes) bits |= code;
  const unsigned width = width_for(bits);
  Bytes packed(kCodesHeaderBytes + (codes.size() * width + 7) / 8);
  packed[0] = static_cast<std::uint8_t>(width);
  store_le(static_cast<std::uint16_t>(codes.size() / rows), &packed[1]);
  BitWriter writer(packed.data() + kCodesHeaderBytes);
  for (const std::uint32_t code : codes) writer.put(code, width);
  writer.finish();
  return packed;
}

std::vector<std::uint32_t> unpack_codes(const char* field, ByteView packed, std::size_t rows) {
  if (packed.empty()) return {};
  if (packed.size() < kCodesHeaderBytes) malformed(field, "cut off within the header");
  const unsigned width = packed[0];
  const std::size_t per_row = load_le<std::uint16_t>(&packed[1]);
  if (width == 0 || width > kCodeWidthMax) malformed(field, "width {}", width);
  if (per_row == 0 || per_row > kTablesMax) malformed(field, "{} codes a row", per_row);
  if (rows == 0) malformed(field, "there are codes but no rows");
  if (rows > kCodesPerMessageMax / per_row) {
    malformed(field, "{} rows of {} codes, at most {} codes", rows, per_row, kCodesPerMessageMax);
  }
  const std::size_t count = rows * per_row;
  const ByteView stream = packed.subspan(kCodesHeaderBytes);
  if (stream.size() != (count * width + 7) / 8) {
    malformed(field, "{} bytes for {} codes of {} bits", stream.size(), count, width);
  }
  std::vector<std::uint32_t> codes(count);
  BitReader reader(stream);
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  std::uint32_t bits = 0;
  for (auto& code : codes) {
    code = reader.get(width, mask);
    bits |= code;
  }
  if (width_for(bits) != width)
    malformed(field, "width {}, but {} suffice", width, width_for(bits));
  if (!reader.padding_is_zero()) malformed(field, "the last byte's padding is not zero");
  return codes;
}

}  // namespace gleaner
