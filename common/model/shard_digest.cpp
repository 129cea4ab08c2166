#include "common/model/shard_digest.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>

namespace gleaner {

static_assert(std::endian::native == std::endian::little,
              "floats and counts are hashed as they lie in memory");

std::uint64_t row_digest(ShardId shard, std::uint32_t row, ByteView values_and_state) {
  const std::uint64_t seed = std::uint64_t{raw(shard)} << 32 | row;
  return XXH3_64bits_withSeed(values_and_state.data(), values_and_state.size(), seed);
}

std::uint64_t rows_digest(std::span<const ShardDigest> shards) {
  static_assert(sizeof(ShardDigest) == 2 * sizeof(std::uint64_t));
  return std::max<std::uint64_t>(1, XXH3_64bits(shards.data(), shards.size_bytes()));
}

}  // namespace gleaner
