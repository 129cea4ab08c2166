// The digest of a shard's stored rows: what a store and a volunteer compare before either trusts
// the other's copy. A sum over rows, so that it has no order and follows a commit row by row.
//
// Not part of it: rows that no commit has touched, which follow from the configuration, and hash
// codes, which follow from a committed row's weights.
#pragma once

#include <cstdint>
#include <span>

#include "common/bytes.hpp"
#include "common/ids.hpp"

namespace gleaner {

struct ShardDigest {
  std::uint64_t rows = 0;  // stored
  std::uint64_t sum = 0;   // of their row_digest, modulo 2^64
  friend bool operator==(const ShardDigest&, const ShardDigest&) = default;
};

// XXH3-64 of the digests of all of a run's shards, in order; never 0. Stateless; any thread.
std::uint64_t rows_digest(std::span<const ShardDigest> shards);

// XXH3-64 of a row: its values, then its optimizer state, as little-endian floats; seeded with the
// row's place. Stateless; any thread.
std::uint64_t row_digest(ShardId shard, std::uint32_t row, ByteView values_and_state);

}  // namespace gleaner
