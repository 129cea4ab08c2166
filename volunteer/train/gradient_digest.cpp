#include "volunteer/train/gradient_digest.hpp"

#include <xxhash.h>

#include <bit>

namespace gleaner {

static_assert(std::endian::native == std::endian::little,
              "digests are defined over little-endian integers");

std::uint64_t gradient_digest(std::span<const std::int32_t> steps) {
  return XXH3_64bits(steps.data(), steps.size_bytes());
}

}  // namespace gleaner
