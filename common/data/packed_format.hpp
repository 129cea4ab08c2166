// The bytes of a packed file, version 1; README.md in this folder describes the part after the
// header. Numbers are little-endian and read in place, so the host must be little-endian too.
// Offsets count from the file's start.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace gleaner {

// XXH3 with 64 bits, the checksum of packed files. Detects damage, not malice.
std::uint64_t checksum(const void* bytes, std::size_t count);

// The checksum of bytes that arrive in pieces; equal for any division into pieces.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(const ChecksumStream&) = delete;
  ChecksumStream& operator=(const ChecksumStream&) = delete;

  void reset();
  void add(const void* bytes, std::size_t count);
  [[nodiscard]] std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gleaner

namespace gleaner::packed {

static_assert(std::endian::native == std::endian::little, "packed files are read in place");

inline constexpr std::uint64_t kMagic = 0x4b4341504e4c4721;  // "!GLNPACK"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint64_t kBlockPoints = 1024;
inline constexpr std::uint32_t kFlagNormalized = 1;
inline constexpr std::uint64_t kPointsMax = std::uint64_t{1} << 48;
inline constexpr std::uint64_t kSourceKeyBytesMax = 1 << 16;

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t flags;
  std::uint64_t points;
  std::uint32_t features;
  std::uint32_t labels;
  std::uint32_t features_used;  // largest id in use, plus one
  std::uint32_t labels_used;
  std::uint64_t label_entries;    // sum over all examples
  std::uint64_t feature_entries;  // sum over all examples
  std::uint32_t labels_max;       // most labels of any example
  std::uint32_t features_max;
  std::uint64_t unsorted_points;
  std::uint64_t repeated_labels;
  std::uint64_t zero_values;
  std::uint64_t fingerprint;
  std::uint64_t index_offset;   // points + 1 row offsets, u64, ascending
  std::uint64_t blocks_offset;  // one checksum per block, u64
  std::uint64_t key_offset;     // the cache key, a text
  std::uint64_t key_bytes;
  std::uint64_t blocks_checksum;
  std::uint64_t key_checksum;
  std::uint64_t reserved[11];     // zero
  std::uint64_t header_checksum;  // of all bytes before it
};

static_assert(sizeof(Header) == 240 && std::is_trivially_copyable_v<Header>);
static_assert(offsetof(Header, header_checksum) == 232);

inline constexpr std::uint64_t kRowsOffset = sizeof(Header);

constexpr std::uint64_t block_count(std::uint64_t points) {
  return (points + kBlockPoints - 1) / kBlockPoints;
}

// A row: u32 label count, u32 feature count, labels u32, features u32, values f32.
constexpr std::uint64_t row_bytes(std::uint64_t labels, std::uint64_t features) {
  return 8 + 4 * labels + 8 * features;
}

inline std::uint64_t checksum_of(const Header& header) {
  return checksum(&header, offsetof(Header, header_checksum));
}

}  // namespace gleaner::packed
