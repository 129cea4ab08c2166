// The digest by which a shard's gradient is compared between a first run and a replay or audit.
#pragma once

#include <cstdint>
#include <span>

namespace gleaner {

// XXH3 (64 bits) of the integers as little-endian bytes.
std::uint64_t gradient_digest(std::span<const std::int32_t> steps);

}  // namespace gleaner
